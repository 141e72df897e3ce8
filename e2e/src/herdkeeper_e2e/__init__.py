"""What `make demo` and the end-to-end tests run: the demo, and the programs that speak SQL from inside the cluster."""
