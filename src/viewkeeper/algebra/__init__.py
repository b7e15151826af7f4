"""Views as immutable algebra: relations over bags of rows, scalars over columns."""
