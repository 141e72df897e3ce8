"""The termination messages of a bookie's entry point (images/bookkeeper/entrypoint.sh)."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.shared.objects import Json

REFUSED = 78
"""Exit code if the volumes are not this bookie's, or contradict each other."""
EMPTIED = 79
"""Exit code if a volume that should hold data is empty."""
COOKIE = "cookie on all volumes:\n"


def refusal(pod: Json | None, exit_code: int) -> str | None:
    """Returns the message of an entry point that ended with this code. None if it did not, or if the bookie serves by now."""
    for ended in _ended(pod):
        if ended.get("exitCode") == exit_code:
            lines = (ended.get("message") or "").strip().splitlines()
            return lines[-1].removeprefix("refused: ") if lines else "the pod's log has the reason"
    return None


def cookie_on_volumes(pod: Json | None) -> bytes | None:
    """Returns the cookie on all directories of a bookie that ended because ZooKeeper lacks it, or None."""
    for ended in _ended(pod):
        message = ended.get("message") or ""
        if message.startswith(COOKIE):
            return str(message).removeprefix(COOKIE).encode()
    return None


def _ended(pod: Json | None) -> Iterator[Json]:
    """Yields how the unready containers ended, newest first."""
    for container in (pod or {}).get("status", {}).get("containerStatuses") or []:
        for state in ("state", "lastState"):
            ended = (container.get(state) or {}).get("terminated")
            if ended and not container.get("ready"):
                yield ended
