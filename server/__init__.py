"""The daemon and the command line. Speaks LSP; decides nothing about performance."""

VERSION = "0.1.0"
"""The package's. Asking `importlib.metadata` for it takes a tenth of the server's start."""
