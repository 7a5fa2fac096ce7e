"""How often events are placed on the right line, with less and less in the trace."""
