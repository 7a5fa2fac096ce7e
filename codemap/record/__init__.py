"""The profiling run itself: `torchtraceap record`."""
