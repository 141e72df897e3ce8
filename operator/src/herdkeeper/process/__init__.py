"""The operator's process: watches, the Lease, workers, probes."""
