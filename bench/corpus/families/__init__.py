"""Vision models of many kinds, small. One file per family, which exports `FAMILY`."""
