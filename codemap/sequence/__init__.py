"""Placing events of a trace that has no Python events: by operator names, shapes and order alone."""
