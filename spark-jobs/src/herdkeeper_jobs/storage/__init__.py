"""Where checkpoints lie: a folder of a volume, a prefix of an object store, or a folder of another file system."""
