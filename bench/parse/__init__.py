"""What reading a trace costs, next to other ways to read the same bytes."""
