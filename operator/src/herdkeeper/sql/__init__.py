"""A client of HerdDB's SQL wire protocol: connections, transactions, batches and leader lookup."""
