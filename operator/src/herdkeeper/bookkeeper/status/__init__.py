"""Derives the status of the bookies. Pure."""
