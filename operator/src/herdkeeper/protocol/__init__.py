"""What the operator, the Spark jobs and the node program tell each other. Pure."""
