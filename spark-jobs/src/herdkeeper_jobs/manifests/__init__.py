"""The manifest of a checkpoint."""
