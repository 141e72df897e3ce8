"""Gauges of what statuses tell, served at /metrics."""
