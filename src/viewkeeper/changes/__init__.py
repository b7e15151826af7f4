"""The change of a view as algebra: one rule per operator, composed."""
