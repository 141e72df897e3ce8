"""Gauges by the statuses of resources, served at /metrics."""
