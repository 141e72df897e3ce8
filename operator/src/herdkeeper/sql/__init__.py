"""The client of HerdDB's SQL wire protocol: connections, transactions, batches and the lookup of a tablespace's leader."""
