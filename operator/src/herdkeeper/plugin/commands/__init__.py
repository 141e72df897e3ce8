"""The commands of `kubectl herdkeeper`, one file each. They import what takes long only when they run."""
