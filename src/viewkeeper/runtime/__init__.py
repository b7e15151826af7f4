"""Plans run on Spark: sessions, steps, installs."""
