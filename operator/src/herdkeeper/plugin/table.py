"""All commands of `kubectl herdkeeper`, in the order in which help and the page show them."""

from __future__ import annotations

from herdkeeper.plugin.command import Command
from herdkeeper.plugin.commands import drain, explain, status, switchover

COMMANDS: tuple[Command, ...] = (
    status.COMMAND,
    explain.COMMAND,
    switchover.COMMAND,
    drain.DRAIN,
    drain.UNDRAIN,
)
