"""When operator and jobs may send a password to SQL nodes."""

from __future__ import annotations

from herdkeeper.api import HerdDBCluster
from herdkeeper.herddb.state.tls import TlsUnusable, TlsUsable
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.reason import Reason


def is_encrypted(herddb: HerdDBCluster | None) -> bool:
    """Returns whether every SQL node serves TLS, by the resource."""
    return herddb is not None and herddb.status is not None and herddb.status.encrypted is True


def why_no_login(tls: TlsUsable | TlsUnusable | None, herddb: HerdDBCluster | None) -> Wait | None:
    """Returns what a login must wait for, or None. `tls` is the verdict on the Secret of the SQL port, None if it is not encrypted."""
    if isinstance(tls, TlsUnusable):
        return Wait(tls.reason, tls.why)
    if (tls is not None) is not is_encrypted(herddb):
        which = "with" if tls is not None else "without"
        return Wait(Reason.WAITING_FOR_HERDDB, f"not all SQL nodes serve {which} TLS yet: they are restarted one by one")
    return None
