"""Turns a run recorded on the CPU into the trace that a device would have given."""

from .hardware import DEVICES
from .settings import JobSettings
from .simulate import simulate

__all__ = ["DEVICES", "JobSettings", "simulate"]
