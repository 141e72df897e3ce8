"""The write-ahead log of a tablespace: what keeps it, and its archive."""
