"""The files of a deleted Checkpoint."""
