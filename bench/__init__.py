"""Measured claims. Each bench writes `bench/<name>/results.json` and prints the same as a table."""
