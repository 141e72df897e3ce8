"""What was seen of the Secret that a HerdDBCluster's `spec.tls` names."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class TlsUsable:
    """SQL nodes can serve with it, and whoever trusts `authorities` (its `ca.crt`: certificates in PEM) can verify them."""

    authorities: str


@dataclass(frozen=True)
class TlsUnusable:
    """It is not there, lacks a key, or no client could verify a node by it."""

    reason: Reason
    why: str
