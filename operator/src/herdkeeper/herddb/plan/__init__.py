"""Plans the SQL nodes. Pure."""
