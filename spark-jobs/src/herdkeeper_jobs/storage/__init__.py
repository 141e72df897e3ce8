"""Where checkpoints lie: a folder of a volume, or a prefix of an object store."""
