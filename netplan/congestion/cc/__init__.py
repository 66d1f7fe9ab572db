"""Congestion controls, one file each; `registry.PROTOCOLS` finds them by name."""
