"""A project: a folder of SQL files and a viewkeeper.toml, and what they ask of its warehouse."""
