"""What was seen of the Secret that a HerdDBCluster's `spec.tls` names."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class TlsUsable:
    """SQL nodes can serve with it until it expires. Whoever trusts `authorities` (its `ca.crt`: certificates in PEM) can verify them."""

    authorities: str
    expires: datetime.datetime | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TlsUnusable:
    """It is not there, lacks a key, or no client could verify a node by it."""

    reason: Reason
    why: str
