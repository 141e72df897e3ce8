"""Orders to SQL nodes, and statements."""
