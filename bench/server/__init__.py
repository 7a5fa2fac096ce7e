"""The language server's budgets, measured on the server as an editor starts it."""
