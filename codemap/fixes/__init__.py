"""One module per anti-pattern: what confirms it in the source, and the edits that fix it."""
