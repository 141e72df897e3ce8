"""Restore drills of a schedule."""
