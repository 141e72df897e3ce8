"""What operator, Spark jobs and node program exchange. Pure."""
