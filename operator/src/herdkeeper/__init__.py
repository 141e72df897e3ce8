"""A Kubernetes operator for a replicated SQL database on Apache BookKeeper."""
