"""What is known of the bookies. Pure."""
