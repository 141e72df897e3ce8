"""The copies that bookies hold of entries: which there should be, and what a bookie answers of them."""
