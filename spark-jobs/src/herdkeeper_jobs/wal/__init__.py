"""HerdDB's write-ahead log in Spark: decodes its entries, and folds them into the tables at an LSN."""
