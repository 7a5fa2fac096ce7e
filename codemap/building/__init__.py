"""What the source builds: models and their values, worked out without running anything."""
