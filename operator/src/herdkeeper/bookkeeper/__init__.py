"""BookKeeperCluster: a fleet of bookies and autorecovery."""
