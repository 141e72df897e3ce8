"""HerdDB's write-ahead log in Spark: decoding its entries, and folding them into the tables at an LSN."""
