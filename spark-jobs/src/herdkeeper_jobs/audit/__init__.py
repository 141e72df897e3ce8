"""The replication audit: checks every entry on every bookie that should hold it."""
