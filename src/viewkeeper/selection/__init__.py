"""Which views and layouts to keep: graphs and numbers in, a choice with a proved bound out."""
