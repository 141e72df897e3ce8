"""Clients of Kubernetes, ZooKeeper and the servers' admin ports."""
