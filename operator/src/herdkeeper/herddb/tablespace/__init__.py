"""Tablespace: its replicas, their verdicts, how it is created and filled."""
