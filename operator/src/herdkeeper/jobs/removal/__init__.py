"""The files of a Checkpoint that is deleted."""
