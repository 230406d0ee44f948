"""Maintainers' tools, and in builder/ what builds the extension."""
