"""`Trace` to meaning: steps, call trees, launches, idle time, costs and the what-if replay."""
