"""What to do for the bookies. Pure."""
