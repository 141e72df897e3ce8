"""What is true of the bookies. Pure."""
