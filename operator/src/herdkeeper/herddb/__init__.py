"""HerdDBCluster and Tablespace: SQL nodes, leadership, replicas, the log."""
