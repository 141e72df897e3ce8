"""The commands of `kubectl herdkeeper`, one file each. Slow imports happen only when a command runs."""
