"""Spark jobs over the ledgers of a BookKeeper cluster: checkpoint and replication audit."""
