"""Reads ledgers and their metadata, without fencing or recovery."""
