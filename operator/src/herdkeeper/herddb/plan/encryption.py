"""When operator and jobs may send a password to SQL nodes."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster
from herdkeeper.herddb.state.tls import TlsUnusable
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.reason import Reason


def is_encrypted(herddb: HerdDBCluster | None) -> bool:
    """Returns whether every SQL node serves TLS, by the resource."""
    return herddb is not None and herddb.status is not None and herddb.status.encrypted is True


def why_no_login(seen: TablespaceObserved) -> Wait | None:
    """Returns what a login must wait for, or None."""
    if isinstance(seen.tls, TlsUnusable):
        return Wait(seen.tls.reason, seen.tls.why)
    if (seen.tls is not None) is not is_encrypted(seen.herddb):
        which = "with TLS" if seen.tls is not None else "without TLS"
        return Wait(Reason.WAITING_FOR_HERDDB, f"not all SQL nodes serve {which} yet: they are restarted one by one")
    return None
