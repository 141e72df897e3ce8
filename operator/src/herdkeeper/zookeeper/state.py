"""A ZooKeeper ensemble: what is declared, what was observed, and what follows from both."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.certificates.issue import KeyPair
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.zookeeper.membership import Membership, Role, Server, decode_membership, file_name, version_of
from herdkeeper.shared import names
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.lost_node import trouble_of
from herdkeeper.shared.names import ZooKeeperNames
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Json, Objects, annotation, is_owned_by, mounts, why_stopping
from herdkeeper.shared.quorum import address_of
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim
from herdkeeper.zookeeper.authority_state import AuthorityRoll
from herdkeeper.zookeeper.authority_words import once_none_serves

NOT_READ = Unknown("the membership was not read, since no member serves")
NUMBERS = range(names.ZOOKEEPER_MOST_MEMBERS)
"""All numbers that a member can have."""
_LEADING = ("leader", "standalone")


class Encryption(Enum):
    """What members do with plain text and TLS, in the order of a move. Members in neighbouring steps understand each other, so they move
    one after the other.

    ACCEPTED: both at the client ports; plain text to other members, and both from them. USED: the same, and TLS to other members.
    REQUIRED: TLS only.
    """

    NONE = 0
    ACCEPTED = 1
    USED = 2
    REQUIRED = 3

    @property
    def has_certificates(self) -> bool:
        """Whether members have certificates."""
        return self is not Encryption.NONE

    @property
    def accepts_plaintext(self) -> bool:
        """Whether clients may use plain text."""
        return self is not Encryption.REQUIRED


ANNOTATED_STEPS: Mapping[Encryption, str] = {Encryption.ACCEPTED: names.TLS_ACCEPTED, Encryption.USED: names.TLS_USED}
"""The steps that accept both, each with the value of the pods' annotation. The mounted certificates show the other two."""
_CLOSED = f"{names.LOOPBACK}:{names.ZOOKEEPER_LOOPBACK_PORT}"
"""The plain port of a member that requires certificates: for its own probes."""


def server_of(cluster: ZooKeeperCluster, number: int, role: Role, *, closed: bool = False) -> Server:
    """Member `number` as in the membership. If it is `closed` to plain text, it uses the plain port only for its own probes: ZooKeeper
    (3.9.5, QuorumPeer.processReconfig) needs a plain port once the membership has had one."""
    client = _CLOSED if closed else str(names.ZOOKEEPER_CLIENT_PORT)
    address = f"{cluster.names.host(number)}:{names.ZOOKEEPER_QUORUM_PORT}:{names.ZOOKEEPER_ELECTION_PORT}"
    return Server(number + 1, address, role, client)


def first_membership(cluster: ZooKeeperCluster, voters: Iterable[int], *, closed: bool = False) -> Membership:
    """The membership that an ensemble is founded with."""
    return Membership(0, tuple(server_of(cluster, number, Role.PARTICIPANT, closed=closed) for number in voters))


def open_members(membership: Membership) -> tuple[int, ...]:
    """Returns the numbers of the members whose plain port is open to clients, in order."""
    return tuple(sorted(server.server_id - 1 for server in membership.servers if server.client != _CLOSED))


def voters_of(membership: Membership) -> tuple[int, ...]:
    """Returns the numbers of the voters, in order. Server ids are one higher."""
    return tuple(sorted(server_id - 1 for server_id in membership.voters))


def observers_of(membership: Membership) -> tuple[int, ...]:
    """Returns the numbers of the observers, in order."""
    return tuple(sorted(server_id - 1 for server_id in membership.observers))


@dataclass(frozen=True)
class EnsembleSecurity:
    """Certificates of an ensemble that asks for them.

    `awaited` names a Secret of the user's that does not exist yet, and what to do; None: there is none. `fresh_authorities` has new
    authorities for the operator's Secrets that do not exist, by their names. `expires` is when the first of the existing ones expires.
    `read_at_start` has the files that a member reads only when it starts, by path: what its client port trusts, and all of the quorum's.
    A change of these restarts it. The client port's own certificate is read for each connection. `ended` is when the certificate ended that
    members started with and show each other; None: it has not.
    """

    awaited: str | None = None
    fresh_authorities: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    identities: DueSecrets = NOTHING_DUE
    read_at_start: Mapping[str, str] = field(default_factory=dict)
    expires: datetime.datetime | None = None
    ended: datetime.datetime | None = None


@dataclass(frozen=True)
class Ensemble:
    """A ZooKeeperCluster as declared and as observed. Each derived value is computed once. Members are called by number.

    `modes` has each member's reported mode: `leader`, `follower`, `observer` or `standalone`; if its pod is Ready and reports none, the
    reason. `zxids` has the last applied transactions that were reported. `membership` is the committed one. `password` may change it (None
    without a Secret); `fresh_password` is random, for a new Secret. `disruption` is why the stack must not be disrupted now, or None.
    `dependents` are the BookKeeperClusters that refer to it. `machines` are the Kubernetes nodes of members that are not Ready. `security`
    is None without certificates. `given` are the authorities that are taken from the user's Secrets, or why one can't be. Its keys are the
    operator's Secrets that keep them. `rolls` are the authorities that others follow. `plaintext_users` are phrases for what else than
    members still needs plain text; they are read only while both are accepted.
    """

    cluster: ZooKeeperCluster
    objects: Objects
    modes: Mapping[int, str | Unknown] = field(default_factory=dict)
    zxids: Mapping[int, int] = field(default_factory=dict)
    membership: Membership | Unknown = NOT_READ
    password: str | None = field(default=None, repr=False)
    fresh_password: str = field(default="", repr=False)
    disruption: str | None = None
    dependents: Dependents = NO_DEPENDENTS
    machines: Nodes = field(default_factory=dict)
    security: EnsembleSecurity | None = None
    given: Mapping[str, KeyPair | Unknown] = field(default_factory=dict)
    rolls: tuple[AuthorityRoll, ...] = ()
    plaintext_users: tuple[str, ...] = ()

    @property
    def named(self) -> ZooKeeperNames:
        """Names of the cluster's objects."""
        return self.cluster.names

    @property
    def declared(self) -> range:
        """The members that are declared."""
        return range(self.cluster.spec.replicas)

    @cached_property
    def identities(self) -> DueSecrets:
        """The due Secrets with certificates. While members serve by connections from before their certificate ended, it is not renewed: the
        first one to restart would refuse the others, which go on showing the one that they started with.
        """
        if self.security is None:
            return NOTHING_DUE
        due, ended, secret = self.security.identities, self.security.ended, self.named.members_secret
        if ended is None or len(self.pods) == 1 or not any(map(self.serves, self.pods)):
            return due
        others = tuple(change for change in due.changes if change.holder.secret != secret)
        why = f"the certificate in the Secret {secret} expired at {text_of(ended)}: it is renewed"
        return replace(due, changes=others, obstacle=due.obstacle or f"{why} {once_none_serves(map(self.named.pod, self.pods))}")

    @cached_property
    def leader(self) -> int | None:
        """The member that reports that it leads. None if no member does, or several do."""
        leading = [number for number, mode in self.modes.items() if mode in _LEADING]
        return leading[0] if len(leading) == 1 else None

    @cached_property
    def voters(self) -> tuple[int, ...] | None:
        """The voters, in order; None if the membership was not read."""
        return None if isinstance(self.membership, Unknown) else voters_of(self.membership)

    @cached_property
    def known_membership(self) -> Membership | None:
        """The committed membership as last read, perhaps long ago. None if it never was, or somebody changed the ConfigMap that has it."""
        if isinstance(self.membership, Membership):
            return self.membership
        files = {version: text for name, text in self._config.items() if (version := version_of(name)) is not None}
        try:
            return decode_membership(f"{files[max(files)]}version={max(files):x}\n".encode()) if files else None
        except MalformedDataError:
            return None

    @cached_property
    def encryption(self) -> Encryption:
        """What the members' template should have.

        It follows from the pods and the committed membership alone: TLS is used only once every pod accepts it, and required only once
        every pod uses it and no member's plain port is open.
        """
        if not self.cluster.has_certificates:
            return Encryption.NONE
        pods, known = set(self._encryption_of_pods.values()), None if self.founding else self.known_membership
        closed = self.cluster.spec.security.mode == "TLS" and not pods & ANNOTATED_STEPS.keys()
        if known is not None:  # somebody may have opened a port of a member that requires TLS
            closed = not open_members(known) or (closed and pods == {Encryption.REQUIRED})
        if closed and Encryption.ACCEPTED not in pods:
            return Encryption.REQUIRED
        return Encryption.ACCEPTED if Encryption.NONE in pods or not (pods or self.founding) else Encryption.USED

    @property
    def accepts_both(self) -> bool:
        """Whether clients may use plain text or certificates."""
        return self.encryption.has_certificates and self.encryption.accepts_plaintext and not self.closes_to_plaintext

    @property
    def closes_to_plaintext(self) -> bool:
        """Whether a member is closed to plain text already: there is no way back."""
        return self.known_membership is not None and len(open_members(self.known_membership)) < len(self.known_membership.servers)

    @cached_property
    def plaintext_needed_by(self) -> tuple[str, ...]:
        """What still needs plain text, as phrases: members and others. Only for an ensemble that accepts both."""
        lagging = (number for number, step in self._encryption_of_pods.items() if step.value < Encryption.USED.value)
        members = tuple(f"the pod {self.named.pod(number)}" for number in lagging)
        absent = tuple(f"the pod {self.named.pod(number)}" for number in self.pods if number not in self._encryption_of_pods)
        return (*members, *absent, *self.plaintext_users)

    @property
    def open_pods(self) -> tuple[str, ...]:
        """The pods of members that accept plain text: from clients, or only at the ports between members."""
        return tuple(self.named.pod(number) for number, step in self._encryption_of_pods.items() if step.accepts_plaintext)

    @cached_property
    def initial_membership(self) -> Membership:
        """What a member with no newer one on its volume begins with: the committed membership as last read, unless it is being founded."""
        known = None if self.founding else self.known_membership
        if known is not None:
            return known
        return first_membership(self.cluster, self.pods, closed=self.encryption is Encryption.REQUIRED)

    @cached_property
    def unlisted_follower(self) -> int | None:
        """The member that follows a single voter without being listed, until it gets its vote. None if there is none."""
        known = None if self.founding else self.known_membership
        if known is None or len(known.voters) > 1:
            return None
        joining = next((number for number in self.declared if number not in voters_of(known)), None)
        return None if joining in observers_of(known) else joining

    @cached_property
    def listed(self) -> frozenset[int]:
        """The members of the committed membership, and the unlisted follower. Empty if the membership was not read."""
        if isinstance(self.membership, Unknown):
            return frozenset()
        committed = (*voters_of(self.membership), *observers_of(self.membership))
        return frozenset(committed if self.unlisted_follower is None else (*committed, self.unlisted_follower))

    @cached_property
    def claims(self) -> Mapping[int, Claim]:
        """The existing claims. One that the StatefulSet made counts as new: it has no mark."""
        found = {number: claim for number in NUMBERS if (claim := self.objects.claims.get(self.named.claim(number))) is not None}
        new = {names.FOUNDED_ANNOTATION: names.NEW}
        made = {number: claim for number, claim in found.items() if self.is_foreign(claim)}
        return {**found, **{number: replace(claim, annotations={**new, **claim.annotations}) for number, claim in made.items()}}

    @cached_property
    def marks(self) -> Mapping[int, str | None]:
        """Whether the member of each existing claim has voted: the annotation `founded`."""
        return {number: claim.annotations.get(names.FOUNDED_ANNOTATION) for number, claim in self.claims.items()}

    @cached_property
    def founding(self) -> bool:
        """Whether every claim is new: only then may an empty member vote."""
        return set(self.marks.values()) <= {names.NEW}

    @cached_property
    def founded_before(self) -> bool:
        """Whether the members have voted once, by the status or the members' configuration."""
        status = self.cluster.status
        return self._config.get(names.FOUNDING_KEY) == "false" or (status is not None and bool(status.founded))

    @property
    def founded(self) -> bool:
        """Whether the members have voted once, or all declared ones vote now."""
        return self.founded_before or all(self.marks.get(number) == names.FOUNDED for number in self.declared)

    @cached_property
    def origin(self) -> str:
        """The uid of the resource that founded the ensemble; all its claims carry it."""
        known = (claim.annotations.get(names.ENSEMBLE_ANNOTATION) for claim in self.claims.values())
        return next(filter(None, known), self.cluster.metadata.uid)

    @cached_property
    def pods(self) -> range:
        """The pods that should run: one per member of the committed membership, up to the highest, and one for an unlisted follower. A
        member beyond NUMBERS, which a person added, runs elsewhere.

        If the membership can't be read, one per claim whose member has voted, and no pod is removed. While an ensemble is founded, the
        number stays as it was at the begin: a later member might vote with an empty disk.
        """
        voted = [number for number, mark in self.marks.items() if mark == names.FOUNDED]
        if not voted and self._began_with is not None:
            return range(self._began_with)
        if not voted and self._replicas is None and self.origin == self.cluster.metadata.uid:
            return self.declared  # of an earlier resource of this name, some members may have begun
        if voted and (own := self.listed.intersection(NUMBERS)):
            return range(max(own) + 1)
        if voted:
            return range(max(self._replicas or 0, max(voted) + 1))
        begun = (number for number, claim in self.claims.items() if names.ENSEMBLE_ANNOTATION in claim.annotations)  # some may be gone
        made = next(number for number in range(len(self.claims) + 1) if number not in self.claims)
        return range(max(self._replicas or 0, made, max(begun, default=-1) + 1))

    @property
    def address(self) -> str:
        """The address at which the operator asks the members: the published one or, before there is one, that of all pods."""
        return self._published or self.named.address(self._replicas or len(self.declared), self.client_port)

    @property
    def client_port(self) -> int:
        """The port to publish: the secure one once all members serve there. Then it stays."""
        published = self._published is not None and f":{names.ZOOKEEPER_SECURE_PORT}" in self._published
        secure = published or self.encryption.value >= Encryption.USED.value
        return names.ZOOKEEPER_SECURE_PORT if self.cluster.has_certificates and secure else names.ZOOKEEPER_CLIENT_PORT

    @property
    def clients_address(self) -> str:
        """The address to publish. It changes only once the membership is the declared one. Otherwise clients would restart at each step."""
        if self._published and self.voters != tuple(self.declared):
            return self._published
        return address_of(self._published, tuple(map(self.named.host, self.declared)), self.client_port)

    def is_foreign(self, claim: Claim) -> bool:
        """Returns whether a claim lacks the operator's labels. The StatefulSet makes one if it finds none, without annotations. If somebody
        removed the labels of another one, its annotations still count.
        """
        return not claim.is_made_for(self.cluster.KIND, self.cluster.metadata.name)

    def is_ready(self, number: int) -> bool:
        """Returns whether a member's pod is Ready. The number may be one beyond NUMBERS, of a member that a person added."""
        return self.objects.pod_ready(self.named.pod(number))

    def serves(self, number: int) -> bool:
        """Returns whether a member's pod is Ready, or is not being deleted while the member reports its mode."""
        pod = self.objects.get("Pod", self.named.pod(number))
        return self.is_ready(number) or (pod is not None and why_stopping(pod) is None and isinstance(self.modes.get(number), str))

    def trouble_of(self, number: int) -> str:
        """Returns why a member does not serve, as a phrase."""
        return trouble_of(self.objects.get("Pod", self.named.pod(number)), self.machines)

    @cached_property
    def _encryption_of_pods(self) -> Mapping[int, Encryption]:
        """What the template had from which each existing pod was made."""
        pods = {number: pod for number in NUMBERS if (pod := self.objects.get("Pod", self.named.pod(number))) is not None}
        return {number: self._encryption_of(pod) for number, pod in pods.items()}

    def _encryption_of(self, pod: Json) -> Encryption:
        unannotated = Encryption.REQUIRED if mounts(pod, self.named.members_secret) else Encryption.NONE
        annotated = annotation(pod, names.QUORUM_TLS_ANNOTATION)
        return next((step for step, value in ANNOTATED_STEPS.items() if value == annotated), unannotated)

    @property
    def _published(self) -> str | None:
        """The address of the status, at the plain port if there are no certificates: the status may be of another mode."""
        known = self.cluster.published_address
        return known if known is None or self.cluster.has_certificates else names.plain_address(known)

    @property
    def _config(self) -> Mapping[str, str]:
        """The files of the members' ConfigMap."""
        return self.objects.data("ConfigMap", self.named.config_map)

    @property
    def _began_with(self) -> int | None:
        """How many members an ensemble began with that is being founded. Its ConfigMap tells it, since anybody may scale or delete its
        StatefulSet. None if that does not say so, or is of an earlier resource of this name.
        """
        made = self.objects.get("ConfigMap", self.named.config_map)
        if made is None or self._config.get(names.FOUNDING_KEY) != "true" or not is_owned_by(made, self.cluster.metadata.uid):
            return None
        try:
            return len(decode_membership(f"{self._config.get(file_name(0), '')}version=0\n".encode()).servers)
        except MalformedDataError:
            return None

    @property
    def _replicas(self) -> int | None:
        """How many pods the StatefulSet has; None if there is none."""
        stateful_set = self.objects.get("StatefulSet", self.named.stateful_set)
        return None if stateful_set is None else int(stateful_set["spec"]["replicas"])
