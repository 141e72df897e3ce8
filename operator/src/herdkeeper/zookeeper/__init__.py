"""ZooKeeperCluster: one ensemble."""
