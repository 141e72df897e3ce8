"""What to do for the SQL nodes. Pure."""
