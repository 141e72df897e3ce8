"""The write-ahead log of a tablespace: who keeps it, and its archive."""
