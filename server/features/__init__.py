"""One file per LSP feature. Each has `register(server)`."""
