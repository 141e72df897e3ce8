"""The subcommands of `herdkeeper`, one file each. They import what they need only when they run."""
