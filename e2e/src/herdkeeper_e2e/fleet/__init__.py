"""The operator's process against a fleet of played stacks, to measure how it scales (`make bench-fleet`). See docs/measurements.md."""
