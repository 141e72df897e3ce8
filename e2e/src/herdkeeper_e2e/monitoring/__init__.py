"""What a platform team sees: metrics, alerts and dashboards."""
