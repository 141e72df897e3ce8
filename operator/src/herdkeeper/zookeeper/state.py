"""What was seen of a ZooKeeperCluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.codecs.zookeeper.membership import Membership
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown

NOT_READ = Unknown("the membership was not read, since no member serves")


@dataclass(frozen=True)
class ZooKeeperObserved:
    """`modes` is what each member says of itself, by number: `leader`, `follower`, `observer` or `standalone`; of one that does not
    say it, why, where its pod is Ready. `zxids` is the last transaction that it has applied, where it told.

    `address` is where clients reach it, `membership` the committed one. `password` may change it, by the Secret; None while there is none;
    `fresh_password` is random, for a Secret that must be made. `disruption` is why the stack must not be disrupted further now, None when
    it may.
    `dependents` are the BookKeeperClusters that refer to it. `machines` are the Kubernetes nodes of members that are not Ready.
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

    @property
    def voters(self) -> int | None:
        """How many members vote, None while that can't be read."""
        return None if isinstance(self.membership, Unknown) else len(self.membership.voters)
