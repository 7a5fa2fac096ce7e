"""The index of a large workspace: how long it takes, and how much memory."""
