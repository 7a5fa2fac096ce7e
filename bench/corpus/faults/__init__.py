"""Anti-patterns that healthy jobs are given. One file a kind: `FAULT`, and `CONTROL` where there is one."""
