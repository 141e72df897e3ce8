"""Waits for a Tablespace that is created, restored, or rebuilds its replicas."""

from __future__ import annotations

from collections.abc import Callable

from herdkeeper_e2e.conditions import condition, not_ready_reason
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

READY = Limit(1500, 2)
FINAL = ("RestoreFailed", "InvalidSpec")
"""Reasons that are final without intervention."""
VERIFIED = "compared with the checkpoint's by digest"
"""End of `status.restore.verified` if no table was altered: SQL returns the digests of the checkpoint's manifest."""


class NeverReadyError(RuntimeError):
    """The Tablespace won't become Ready by itself. The message is the condition's."""


def readiness(name: str, item: Object | None) -> Object | Pending:
    """Returns the Tablespace if it is Ready for its current generation. Raises NeverReadyError. Pure."""
    if item is None:
        return Pending(f"tablespace {name}: it does not exist")
    ready = condition(item, "Ready")
    if ready is not None and ready["reason"] in FINAL:
        raise NeverReadyError(f"tablespace {name}: {ready['reason']}: {ready['message']}")
    reason = not_ready_reason(item)
    return item if reason is None else Pending(f"tablespace {name}: {reason}")


def wait_until_ready(kubectl: Kubectl, name: str, say: Callable[[str], None]) -> Object:
    """Returns the Tablespace once it is Ready with all replicas. Raises NeverReadyError, or WaitError after READY."""
    return wait_for(f"the tablespace {name}", lambda: readiness(name, kubectl.get("tablespace", name)), READY, say)
