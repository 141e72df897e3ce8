"""What pods with a Spark driver share: Jobs, stores, keys."""
