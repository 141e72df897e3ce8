"""Reads: Kubernetes, ZooKeeper, SQL nodes. What can't be read is Unknown; only a silent API server stops a reconcile."""
