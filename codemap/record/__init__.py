"""The profiling run itself: `torchtraceap record`, and `recording` for a part of a program."""

from .context import Run, recording

__all__ = ["Run", "recording"]
