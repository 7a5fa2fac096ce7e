"""How well the what-if replay reproduces recordings, and what fixes were measured to save."""
