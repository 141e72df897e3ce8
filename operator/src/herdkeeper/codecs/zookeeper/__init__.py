"""ZooKeeper's membership and super digest."""
