"""The observation of the Secret in a HerdDBCluster's `spec.tls`."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class TlsUsable:
    """SQL nodes can use it until it expires. `authorities` (its `ca.crt`, PEM certificates) verify them."""

    authorities: str
    expires: datetime.datetime | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TlsUnusable:
    """It does not exist, lacks a key, or does not let clients verify the nodes."""

    reason: Reason
    why: str
