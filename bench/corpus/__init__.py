"""Traces with known anti-patterns, made by running models, for the detector to learn from."""
