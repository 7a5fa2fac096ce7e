"""Random edits of programs whose statements are known by number, to measure how places survive them."""
