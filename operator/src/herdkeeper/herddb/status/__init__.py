"""What is true of the SQL nodes. Pure."""
