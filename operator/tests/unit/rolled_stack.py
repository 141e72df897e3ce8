"""A stack with certificates in one namespace, in which the operator looks, Kubernetes makes pods and kubelets bring files.

Of each process it is known whom it trusts and what it shows. Members have both of the quorum, and whom their client port trusts, since
their start; all else is as the kubelet brought it last.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from situations import quickstart, with_metadata, with_spec

from herdkeeper.api.zookeeper_cluster import Security
from herdkeeper.certificates.authority import is_signed_by, name_of
from herdkeeper.certificates.roles import bookkeeper_holders
from herdkeeper.clients.identities import observe_identities
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.codecs.zookeeper.membership import Membership, Role
from herdkeeper.planning.actions import Action, Annotate, AnswerRequest, Apply, Create, Delete, Plan, SetAuthority
from herdkeeper.planning.identities import secret_of, with_identities
from herdkeeper.planning.summary import Health
from herdkeeper.shared import names
from herdkeeper.shared.conditions import AUTHORITIES_ROLLED
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.shared.time import text_of
from herdkeeper.zookeeper.observe_authority_roll import observe_authority_rolls
from herdkeeper.zookeeper.observe_given_authorities import observe_given_authorities
from herdkeeper.zookeeper.observe_security import kept_authorities, observe_security
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.state import Ensemble, server_of
from herdkeeper.zookeeper.status import summarize_zookeeper

SECURE = with_spec(quickstart("ZooKeeperCluster"), security=Security(mode="TLS"))
BOOKKEEPER = quickstart("BookKeeperCluster")
NAMED = SECURE.names
MEMBERS = [NAMED.pod(number) for number in range(3)]
BOOKIE = "bk-bookie-0-0"
ADDRESS = NAMED.address(3, names.ZOOKEEPER_SECURE_PORT)
KUBELET_WITHIN = timedelta(minutes=9)
"""After that each running pod has a changed Secret's files."""


class Stack:
    """The operator keeps nothing between two looks: each begins with what is in the API server."""

    def __init__(self, declared: Any = SECURE, items: Mapping[tuple[str, str], Json] | None = None) -> None:
        self.declared = self.cluster = declared
        self.others: list[Json] = []
        """Other ZooKeeperClusters of the namespace."""
        self.now = datetime.now(UTC)
        self.ahead = timedelta()
        """Of the operator's clock."""
        self.items: dict[tuple[str, str], Json] = dict(items or {})
        self.changed: dict[str, datetime] = {}
        self.mounted: dict[str, dict[str, Mapping[str, str]]] = {}
        self.started: dict[str, dict[str, Mapping[str, str]]] = {}
        self.events: list[str] = []
        self.answers: list[str] = []
        self._version = 0
        for _ in range(8):
            self.look()
            self.look_at_bookies()
        self.start(BOOKIE, [BOOKKEEPER.names.identity_secret], "BookKeeperCluster", "bk")
        self.events.clear()

    # the operator

    def look(self, actions: int = 100) -> Plan:
        """One look at the ensemble, of whose plan only the first actions are executed."""
        self.kubernetes()
        ensemble = self.ensemble()
        plan = with_identities(plan_zookeeper(ensemble), self.cluster, ensemble.identities)
        for action in plan.actions[:actions]:
            self.do(action)
        self.kubernetes()
        return plan

    def look_at_bookies(self) -> None:
        due = observe_identities(BOOKKEEPER, bookkeeper_holders(BOOKKEEPER), ADDRESS, self)  # type: ignore[arg-type]
        for action in with_identities(Plan(), BOOKKEEPER, due).actions:
            self.do(action)

    def rolled(self) -> Health | None:
        """The condition that tells how far it is."""
        return summarize_zookeeper(self.ensemble()).conditions.get(AUTHORITIES_ROLLED)

    def ask(self) -> None:
        self.cluster = with_metadata(self.declared, annotations={names.ROLL_AUTHORITIES_ANNOTATION: "now"}, resource_version="77")

    def ensemble(self) -> Ensemble:
        kept = kept_authorities(self.cluster, Objects(self.items))
        given = observe_given_authorities(self.cluster, kept, self, self.now + self.ahead)  # type: ignore[arg-type]
        found = Ensemble(self.cluster, Objects(self.items), given=given)
        everybody = tuple(server_of(SECURE, number, Role.PARTICIPANT, closed=True) for number in range(3))
        return replace(
            found,
            modes={0: "follower", 1: "follower", 2: "leader"},
            zxids=dict.fromkeys(range(3), 0x100000001),
            membership=Membership(0x100000000, everybody),
            password=(self.secret(ObjectKey("demo", NAMED.reconfig_secret)) or {}).get(names.PASSWORD_KEY),
            fresh_password="fresh",
            security=observe_security(self.cluster, found.objects, kept, given, self.now + self.ahead),
            rolls=observe_authority_rolls(found, kept, self, self.now + self.ahead),  # type: ignore[arg-type]
        )

    def do(self, action: Action) -> None:
        match action:
            case Apply(manifest) | Create(manifest):
                self.put(manifest)
            case SetAuthority(manifest, why):
                key = (manifest["kind"], manifest["metadata"]["name"])
                assert manifest["metadata"]["resourceVersion"] == self.items[key]["metadata"]["resourceVersion"]
                self.put(manifest)
                self.events.append(why)
            case Annotate(kind, name, _, annotations):
                item = copy.deepcopy(self.items[kind, name])
                item["metadata"]["annotations"] = {**item["metadata"].get("annotations", {}), **annotations}
                self.put(item)
            case Delete(_, kind, name):
                del self.items[kind, name]
            case AnswerRequest(_, _, version, _, answer):
                assert version == self.cluster.metadata.resource_version
                self.answers.append(answer)
                self.cluster = self.declared
            case _:
                raise AssertionError(f"unexpected: {action}")

    # the API server

    def put(self, manifest: Json) -> None:
        self._version += 1
        key = manifest["kind"], manifest["metadata"]["name"]
        metadata = {"uid": f"uid-{key[1]}", **manifest["metadata"], "resourceVersion": str(self._version)}
        self.items[key] = {**manifest, "metadata": metadata}
        self.changed[key[1]] = self.now
        if key[0] == "StatefulSet":
            revision = str(manifest["spec"]["template"])
            self.items[key]["status"] = {"observedGeneration": 0, "updateRevision": revision}

    def hold(self, secret: str, data: Mapping[str, str]) -> None:
        """Somebody writes a Secret's data."""
        metadata = self.items["Secret", secret]["metadata"]
        self.put(secret_of(metadata, dict(data)))

    def secret(self, key: ObjectKey) -> dict[str, str] | None:
        found = self.items.get(("Secret", key.name))
        return None if found is None else values_of_secret(found)

    recent_secret = secret

    def documents(self, _kind: Any, _namespace: str) -> tuple[Json, ...]:
        """All ZooKeeperClusters of the namespace."""
        return ({"metadata": {"name": "zk"}, "spec": self.cluster.spec.model_dump(by_alias=True)}, *self.others)

    def owned(self, _kind: str, _key: ObjectKey, _kinds: Sequence[Any]) -> Objects:
        return Objects(self.items)

    def labelled(self, _namespace: str, labels: Mapping[str, str], kinds: Sequence[tuple[str, str]]) -> Objects:
        chosen = {kind for _, kind in kinds}
        return Objects(
            {k: v for k, v in self.items.items() if k[0] in chosen and labels.items() <= v["metadata"].get("labels", {}).items()}
        )

    # Kubernetes

    def kubernetes(self) -> None:
        """The StatefulSet makes the members that are missing."""
        stateful_set = self.items.get(("StatefulSet", NAMED.stateful_set))
        for name in MEMBERS:
            if stateful_set is not None and ("Pod", name) not in self.items:
                self.start(name, [NAMED.clients_secret, NAMED.members_secret], "ZooKeeperCluster", "zk")
                self.items["Pod", name]["metadata"]["labels"][names.REVISION_LABEL] = stateful_set["status"]["updateRevision"]
                template = stateful_set["spec"]["template"]
                self.items["Pod", name]["metadata"]["annotations"] = template["metadata"]["annotations"]
                self.items["Pod", name]["spec"]["containers"] = template["spec"]["containers"]

    def start(self, name: str, secrets: Sequence[str], kind: str, owner: str) -> None:
        """A pod that is Ready and mounts these Secrets as they are."""
        self.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": names.labels("server", kind, owner), "creationTimestamp": text_of(self.now)},
                "spec": {"volumes": [{"name": each, "secret": {"secretName": each}} for each in secrets]},
            }
        )
        self.is_ready(name)
        self.mounted[name] = {each: values_of_secret(self.items["Secret", each]) for each in secrets}
        self.started[name] = dict(self.mounted[name])

    def is_ready(self, name: str, status: str = "True") -> None:
        entry = {"type": "Ready", "status": status, "lastTransitionTime": text_of(self.now)}
        self.items["Pod", name]["status"] = {"phase": "Running", "conditions": [entry]}

    def bring(self, pod: str) -> None:
        """The kubelet brings what is in the Secrets now; where one is gone, the files stay."""
        for secret in self.mounted[pod]:
            if ("Secret", secret) in self.items:
                self.mounted[pod][secret] = values_of_secret(self.items["Secret", secret])

    def passes(self, minutes: float) -> None:
        """Time passes, and kubelets are as late as they may be."""
        self.now += timedelta(minutes=minutes)
        for pod, mounts in self.mounted.items():
            if any(self.changed[secret] + KUBELET_WITHIN <= self.now for secret in mounts):
                self.bring(pod)

    # who trusts whom

    def happens(self, what: str, number: int) -> None:
        """One event, which the number varies."""
        match what:
            case "look":
                self.look()
            case "crash":
                self.look(actions=number)
            case "bookies":
                self.look_at_bookies()
            case "kubelet":
                self.bring([*MEMBERS, BOOKIE][number % 4])
            case "time":
                self.passes(number)
            case "end":
                self.items.pop(("Pod", MEMBERS[number % 3]), None)
            case _:
                raise AssertionError(what)

    def authorities(self) -> dict[str, list[str]]:
        """By Secret the names of those whom it trusts, then of who signed its certificate."""
        found = {}
        for secret in (NAMED.clients_secret, NAMED.operator_secret, NAMED.members_secret, "bk-bookie-identity", "bk-bookie-readers"):
            data = values_of_secret(self.items["Secret", secret])
            found[secret] = [*_names(data["ca.crt"]), x509.load_pem_x509_certificate(data["tls.crt"].encode()).issuer.rfc4514_string()[3:]]
        return found

    def secret_of_bookie(self) -> dict[str, str]:
        return values_of_secret(self.items["Secret", BOOKKEEPER.names.identity_secret])

    def strangers(self) -> list[str]:
        """Pairs of processes of which one would refuse the other's certificate."""
        operator = values_of_secret(self.items["Secret", NAMED.operator_secret])
        clients = {"operator": (operator["ca.crt"], operator["tls.crt"])}
        quorum = {}
        for pod in MEMBERS:
            shown = self.mounted[pod][NAMED.clients_secret]["tls.crt"]
            clients[pod] = (self.started[pod][NAMED.clients_secret]["ca.crt"], shown)
            quorum[pod] = tuple(self.started[pod][NAMED.members_secret][key] for key in ("ca.crt", "tls.crt"))
        bookie = self.mounted[BOOKIE][BOOKKEEPER.names.identity_secret]
        clients[BOOKIE] = (bookie["ca.crt"], bookie["tls.crt"])
        return [
            f"{one} does not trust {other}"
            for group in (clients, quorum)
            for one, (trusted, _) in group.items()
            for other, (_, shown) in group.items()
            if not any(
                is_signed_by(x509.load_pem_x509_certificate(shown.encode()), signer)
                for signer in x509.load_pem_x509_certificates(trusted.encode())
            )
        ]


def _names(bundle: str) -> list[str]:
    certificates = bundle.split("-----END CERTIFICATE-----\n")[:-1]
    return [name_of(f"{text}-----END CERTIFICATE-----\n") for text in certificates]
