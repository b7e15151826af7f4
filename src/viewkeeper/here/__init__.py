"""Changes of few rows, computed by this process: Spark takes longer to plan them than they take."""
