"""Turns a run recorded on the CPU into the trace that a device would have given."""
