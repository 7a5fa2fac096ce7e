"""The detector against what people would use instead."""
