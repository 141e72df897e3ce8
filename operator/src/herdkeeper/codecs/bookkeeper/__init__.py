"""BookKeeper's metadata, entries, digests and wire protocol."""
