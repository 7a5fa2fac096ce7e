"""The second stage: a local language model explains what the first stage found, and everything it says is checked."""
