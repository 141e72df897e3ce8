"""Reads ledgers and their metadata without ever fencing or recovering them."""
