"""From trace to source and back: where a finding lives, and the edit that fixes it. Knows no LSP type."""
