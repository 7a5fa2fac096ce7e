"""One module per anti-pattern. A module here that defines `PATTERN` is a rule; `registry` finds it."""
