"""The replication audit: every entry on every bookie that should hold it."""
