"""HerdDB's znodes, log entries, tables and users file."""
