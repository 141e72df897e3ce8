"""Reads of the SQL nodes and of HerdDB's records."""
