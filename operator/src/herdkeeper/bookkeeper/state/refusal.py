"""The termination messages of a bookie's entry point (images/bookkeeper/entrypoint.sh)."""

from __future__ import annotations

from herdkeeper.shared.objects import Json, ended_in

REFUSED = 78
"""Exit code if the volumes are not this bookie's, or contradict each other."""
EMPTIED = 79
"""Exit code if a volume that should hold data is empty."""
COOKIE = "cookie on all volumes:\n"


def refusal(pod: Json | None, exit_code: int) -> str | None:
    """Returns the message of an entry point that ended with this code. None if it did not, or if the bookie serves by now."""
    for ended in ended_in(pod):
        if ended.exit_code == exit_code and not ended.ready:
            lines = ended.message.strip().splitlines()
            return lines[-1].removeprefix("refused: ") if lines else "the pod's log has the reason"
    return None


def cookie_on_volumes(pod: Json | None) -> bytes | None:
    """Returns the cookie on all directories of a bookie that ended because ZooKeeper lacks it, or None."""
    told = (ended.message for ended in ended_in(pod) if ended.message.startswith(COOKIE) and not ended.ready)
    return next((message.removeprefix(COOKIE).encode() for message in told), None)
