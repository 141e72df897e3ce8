"""The observation of a ZooKeeperCluster."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.codecs.zookeeper.membership import Membership
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown

NOT_READ = Unknown("the membership was not read, since no member serves")


@dataclass(frozen=True)
class EnsembleSecurity:
    """Certificates of an ensemble that asks for them. `fresh_authorities` are new ones, by the names of their Secrets, for those that are
    not there; `expires` is when the first of those that are expires. `read_at_start` as of build.Ensemble."""

    fresh_authorities: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    identities: DueSecrets = NOTHING_DUE
    read_at_start: Mapping[str, str] = field(default_factory=dict)
    expires: datetime.datetime | None = None


@dataclass(frozen=True)
class ZooKeeperObserved:
    """What was observed of a ZooKeeperCluster.

    `modes` has each member's reported mode, by number: `leader`, `follower`, `observer` or `standalone`; if its pod is Ready and reports
    none, the reason. `zxids` has the last applied transactions that were reported. `address` is where clients connect, `membership` the
    committed one. `password` may change it (None without a Secret); `fresh_password` is random, for a new Secret. `disruption` is why the
    stack must not be disrupted now, or None. `dependents` are the BookKeeperClusters that refer to it. `machines` are the Kubernetes nodes
    of members that are not Ready. `security` is None without certificates.
    """

    objects: Objects
    modes: Mapping[int, str | Unknown]
    zxids: Mapping[int, int] = field(default_factory=dict)
    address: str = ""
    membership: Membership | Unknown = NOT_READ
    password: str | None = field(default=None, repr=False)
    fresh_password: str = field(default="", repr=False)
    disruption: str | None = None
    dependents: Dependents = NO_DEPENDENTS
    machines: Nodes = field(default_factory=dict)
    security: EnsembleSecurity | None = None

    @property
    def identities(self) -> DueSecrets:
        """The due Secrets with certificates."""
        return NOTHING_DUE if self.security is None else self.security.identities

    @property
    def voters(self) -> int | None:
        """Number of voters, None if unreadable."""
        return None if isinstance(self.membership, Unknown) else len(self.membership.voters)
