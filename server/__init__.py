"""The daemon and the command line. Speaks LSP; decides nothing about performance."""
