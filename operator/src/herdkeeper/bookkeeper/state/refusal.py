"""The termination message of a bookie's entry point (images/bookkeeper/entrypoint.sh)."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.shared.objects import Json

REFUSED = 78
"""Its exit code when the volumes are not those of this bookie, or contradict each other."""
EMPTIED = 79
"""Its exit code when a volume that should hold data is empty."""
COOKIE = "cookie on all volumes:\n"


def refusal(pod: Json | None, exit_code: int) -> str | None:
    """What the entry point said when it ended with this code; None when it did not, or when the bookie serves by now."""
    for ended in _ended(pod):
        if ended.get("exitCode") == exit_code:
            lines = (ended.get("message") or "").strip().splitlines()
            return lines[-1].removeprefix("refused: ") if lines else "the pod's log has the reason"
    return None


def cookie_on_volumes(pod: Json | None) -> bytes | None:
    """The cookie that all directories of a bookie have that ended for lack of one in ZooKeeper; None while it has told nothing."""
    for ended in _ended(pod):
        message = ended.get("message") or ""
        if message.startswith(COOKIE):
            return str(message).removeprefix(COOKIE).encode()
    return None


def _ended(pod: Json | None) -> Iterator[Json]:
    """How the containers ended that are not ready, the newest end first."""
    for container in (pod or {}).get("status", {}).get("containerStatuses") or []:
        for state in ("state", "lastState"):
            ended = (container.get(state) or {}).get("terminated")
            if ended and not container.get("ready"):
                yield ended
