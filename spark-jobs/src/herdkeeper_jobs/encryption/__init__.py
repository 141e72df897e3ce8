"""What is written outside of the cluster is unreadable without a key of a Secret."""
