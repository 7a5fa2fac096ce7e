"""What the forest is told of a window: one module per group of figures, each figure documented."""
