"""What `make demo` and the end-to-end tests run: the demo, and SQL programs inside the cluster."""
