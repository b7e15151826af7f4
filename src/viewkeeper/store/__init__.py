"""Delta tables as the only state: logs, versions, changes, and what is kept with each view."""
