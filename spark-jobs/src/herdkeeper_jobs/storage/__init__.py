"""Files of checkpoints and archives, in a folder of a volume or below a prefix of an object store."""
