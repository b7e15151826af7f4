"""TPC-H: its tables, rows and queries. Derived from TPC-H, not comparable to published TPC results."""
