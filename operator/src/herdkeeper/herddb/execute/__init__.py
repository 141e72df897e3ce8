"""Orders to SQL nodes, and SQL statements."""
