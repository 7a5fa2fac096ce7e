"""Traces to findings. Knows traces; knows no source file and no editor."""
