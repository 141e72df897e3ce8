"""The Checkpoint job: all tables of a tablespace at an LSN, as Parquet files and a manifest."""
