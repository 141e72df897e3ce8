"""Waits for a Tablespace: one that is made, restored, or gets its copies back."""

from __future__ import annotations

from collections.abc import Callable

from herdkeeper_e2e.conditions import condition, not_ready_reason
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

READY = Limit(1500, 2)
FINAL = ("RestoreFailed", "InvalidSpec")
"""Reasons after which nothing changes by itself."""
VERIFIED = "compared with the checkpoint's by digest"
"""How `status.restore.verified` ends where no table was altered: what SQL returns has the digests of the checkpoint's manifest."""


class NeverReadyError(RuntimeError):
    """The Tablespace won't become Ready by itself; the message is the condition's own."""


def readiness(name: str, item: Object | None) -> Object | Pending:
    """The Tablespace when it is Ready for its present generation. Raises NeverReadyError. Pure."""
    if item is None:
        return Pending(f"tablespace {name}: it is not there")
    ready = condition(item, "Ready")
    if ready is not None and ready["reason"] in FINAL:
        raise NeverReadyError(f"tablespace {name}: {ready['reason']}: {ready['message']}")
    reason = not_ready_reason(item)
    return item if reason is None else Pending(f"tablespace {name}: {reason}")


def wait_until_ready(kubectl: Kubectl, name: str, say: Callable[[str], None]) -> Object:
    """The Tablespace, once it is Ready with all of its copies. Raises NeverReadyError, or WaitError after READY."""
    return wait_for(f"the tablespace {name}", lambda: readiness(name, kubectl.get("tablespace", name)), READY, say)
