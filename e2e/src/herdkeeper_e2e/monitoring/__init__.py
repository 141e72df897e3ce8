"""Monitoring for a platform team: metrics, alerts and dashboards."""
