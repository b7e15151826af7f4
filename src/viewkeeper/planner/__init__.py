"""What a refresh will do, and why: plans are values; explaining and running are their two readers."""
