"""Waits for a Checkpoint or a ReplicationAudit."""

from __future__ import annotations

from collections.abc import Callable

from herdkeeper_e2e.conditions import unfinished_reason
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

END = Limit(1800, 2)


class JobFailedError(RuntimeError):
    """The resource's phase is Failed; the message is the resource's own."""


def wait_until_succeeded(kubectl: Kubectl, kind: str, name: str, say: Callable[[str], None]) -> Object:
    """The resource once its phase is Succeeded. Raises JobFailedError, or WaitError after half an hour."""

    def ask() -> Object | Pending:
        item = kubectl.get(kind, name)
        if item is None:
            raise JobFailedError(f"{kind} {name} was deleted meanwhile")
        if item.get("status", {}).get("phase") == "Failed":
            raise JobFailedError(f"{kind} {name} failed: {item['status'].get('message', '')}")
        reason = unfinished_reason(item)
        return Pending(f"{kind} {name}: {reason}") if reason else item

    return wait_for(f"the end of {kind} {name}", ask, END, say)
