"""Spark jobs over the ledgers of a BookKeeper cluster: checkpoints, restores, the archive, audits and repairs."""
