"""Bytes to `Trace`: one profiler recording as numpy columns in integer nanoseconds."""
