"""For tests: a reference interpreter of the algebra, strategies for views and histories, worked examples."""
