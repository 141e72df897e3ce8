"""All commands of `kubectl herdkeeper`, in the order of help and page."""

from __future__ import annotations

from herdkeeper.plugin.command import Command
from herdkeeper.plugin.commands import (
    audit,
    checkpoint,
    connection,
    doctor,
    drain,
    explain,
    full_check,
    logs,
    pause,
    plan,
    recover,
    report,
    restart,
    restore,
    roll_authorities,
    run_now,
    sql,
    status,
    support_bundle,
    switchover,
)

COMMANDS: tuple[Command, ...] = (
    status.COMMAND,
    explain.COMMAND,
    switchover.COMMAND,
    drain.DRAIN,
    drain.UNDRAIN,
    checkpoint.COMMAND,
    audit.COMMAND,
    restore.COMMAND,
    run_now.COMMAND,
    full_check.COMMAND,
    roll_authorities.COMMAND,
    pause.PAUSE,
    pause.RESUME,
    restart.COMMAND,
    plan.COMMAND,
    recover.COMMAND,
    connection.COMMAND,
    logs.COMMAND,
    sql.COMMAND,
    report.COMMAND,
    doctor.COMMAND,
    support_bundle.COMMAND,
)
