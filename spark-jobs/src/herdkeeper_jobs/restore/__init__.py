"""The restore job: loads a checkpoint's tables into a new tablespace, through SQL."""
