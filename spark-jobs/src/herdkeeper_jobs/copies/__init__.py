"""The copies that bookies hold of entries: which should exist, and what a bookie returns."""
