# at: y = a @ b
# line: """Products."""
# fix: unsafe
"""Products."""


def f(a, b):
    y = a @ b
    return y
