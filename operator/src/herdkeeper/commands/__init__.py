"""The subcommands of `herdkeeper`, one file each. They import what they run only when they run."""
