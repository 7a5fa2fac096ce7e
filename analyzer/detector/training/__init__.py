"""Learns the detector's models. Needs the `train` extra; nothing outside this folder imports it."""
