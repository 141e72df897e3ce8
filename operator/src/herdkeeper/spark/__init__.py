"""What pods with a Spark driver have in common: Jobs, stores, keys."""
