"""The members of a ZooKeeperCluster, played: what StatefulSet's controller, kubelet and the servers would do, in one turn."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from stage import Stage

from herdkeeper.codecs.zookeeper.membership import CONFIG_PATH, Membership, decode_membership
from herdkeeper.shared.names import ObjectKey, ZooKeeperNames, operator_identity, plain_address

FOUNDING_VERSION = 0x100000000
"""What ZooKeeper gives the membership of a founding, when its first leader begins."""


@dataclass
class PlayedMembers:
    """The members of the ZooKeeperCluster `name`. The one with the number `leader`, or else the highest voter, leads."""

    stage: Stage
    name: str
    leader: int | None = None

    @property
    def named(self) -> ZooKeeperNames:
        return ZooKeeperNames(ObjectKey(self.stage.namespace, self.name))

    @property
    def membership(self) -> Membership:
        """The committed membership."""
        return decode_membership(self.stage.ensemble.znodes[CONFIG_PATH][0])

    @property
    def voters(self) -> list[int]:
        """Numbers of those who vote."""
        return sorted(server_id - 1 for server_id in self.membership.voters)

    def turn(self) -> None:
        """There is a Ready pod for each number below the StatefulSet's replicas, from its present template, and no other one."""
        wanted = int(self.stage.found("StatefulSet", self.named.stateful_set)["spec"]["replicas"])
        for number in range(wanted):
            self.stage.serve(self.named.stateful_set, number)
        there = {pod["metadata"]["name"] for pod in self.stage.listed("Pod")}
        for number in range(wanted, 9):
            if self.named.pod(number) in there:
                self.stage.delete("Pod", self.named.pod(number))
        if CONFIG_PATH not in self.stage.ensemble.znodes:
            self._found(wanted)
        status = self.stage.found("ZooKeeperCluster", self.name).get("status") or {}
        self.stage.ensembles.address = status.get("address") or self.named.address(wanted)
        self.stage.ensembles.plain = plain_address(self.stage.ensembles.address) if status.get("plaintextNeededBy") else None
        self.stage.ensembles.identity = operator_identity(self.stage.ensembles.address, self.stage.namespace)
        self.speak(wanted)

    def speak(self, pods: int) -> None:
        """Each member says what it is."""
        leader = self.leader if self.leader in self.voters else max(self.voters)
        self.stage.nodes.zookeeper_serves(
            self.named,
            tuple("leader" if number == leader else "follower" if number in self.voters else "observer" for number in range(pods)),
        )

    def _found(self, members: int) -> None:
        """The first leader begins, and the members know the digest of the password that they were started with."""
        text = self.stage.found("ConfigMap", self.named.config_map)["data"]["zoo.cfg.dynamic"]
        first = decode_membership(f"{text}version={FOUNDING_VERSION:x}".encode())
        assert len(first.voters) == members
        self.stage.ensemble.has_membership(first)
        secret = self.stage.found("Secret", self.named.reconfig_secret)["data"]
        self.stage.ensembles.password = base64.b64decode(secret["password"]).decode()
