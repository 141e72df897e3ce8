"""The restore job: a checkpoint's tables into a new tablespace, through SQL."""
