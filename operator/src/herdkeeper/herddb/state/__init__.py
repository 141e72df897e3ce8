"""What is known of the SQL nodes. Pure."""
