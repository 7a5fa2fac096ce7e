"""Windows -> probabilities: a forest and a network that learned what anti-patterns look like in traces."""
