"""Derives the status of the SQL nodes. Pure."""
