"""Reads of the bookies, their metadata and ledgers."""
