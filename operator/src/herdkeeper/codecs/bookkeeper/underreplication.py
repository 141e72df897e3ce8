"""Autorecovery's data below the root in ZooKeeper: marks of under-replicated ledgers, locks, and settings.

Source: ZkLedgerUnderreplicationManager and UnderreplicatedLedgerFormat of BookKeeper 4.18.0.
"""

from __future__ import annotations

import re

MARK = re.compile(r"urL[0-9]+")
"""Name of a mark, four folders of four hexadecimal digits below marks_path()."""
MARK_DEPTH = 4
_TIME = re.compile(rb"^[ \t]*ctime:[ \t]*([0-9]{1,14})[ \t\r]*$", re.MULTILINE)
"""Up to the year 5138. No date can show a much later one. Spaces of one line only: of many empty lines, each would be tried to the end."""


def marks_path(root: str) -> str:
    return f"{root}/underreplication/ledgers"


def lock_path(root: str, ledger_id: int) -> str:
    """A ledger's lock, an ephemeral znode. Only its owner may copy the ledger's entries."""
    return f"{root}/underreplication/locks/urL{ledger_id:010d}"


def recovery_delay_path(root: str) -> str:
    """The seconds that a bookie may be away, as text. The first auditor copies them from its configuration."""
    return f"{root}/underreplication/lostBookieRecoveryDelay"


def disabled_path(root: str) -> str:
    """While this znode exists, nothing is copied."""
    return f"{root}/underreplication/disable"


def mark_time_ms(data: bytes) -> int | None:
    """Returns when a mark was made, in Unix milliseconds, or None."""
    found = _TIME.search(data)
    return int(found[1]) if found else None


def decode_recovery_delay(data: bytes) -> int | None:
    """Returns the seconds, or None if they are not a number."""
    text = data.decode("ascii", "replace").strip()
    return int(text) if re.fullmatch("[0-9]{1,19}", text) else None
