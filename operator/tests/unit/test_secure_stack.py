"""A stack that is founded with certificates: whose they are, when they are made, who shows which one where, and what refuses a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from kubernetes.client import ApiException
from situations import live, member_claims, objects, quickstart, ready, security_of, with_spec, with_status
from urllib3.exceptions import HTTPError

from herdkeeper.api.zookeeper_cluster import Security
from herdkeeper.certificates.authority import authority_data, first_authority
from herdkeeper.certificates.issue import Validity, fresh_key
from herdkeeper.certificates.roles import bookkeeper_holders, sql_nodes_holder
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.identities import observe_identities, read_identity
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.herddb.observe.tls import judged
from herdkeeper.herddb.state.log_store import log_store
from herdkeeper.herddb.state.tls import TlsUsable
from herdkeeper.planning.actions import Apply, Create, Plan, Wait
from herdkeeper.planning.identities import LONGEST_SECONDS, secret_of, with_identities
from herdkeeper.planning.summary import Health
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, TablespaceNames, ZooKeeperNames, operator_identity, secure_ensemble
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.state import Ensemble
from herdkeeper.zookeeper.status import summarize_zookeeper

PLAIN = quickstart("ZooKeeperCluster")
SECURE = with_spec(PLAIN, security=Security(mode="TLS"))
NAMED = ZooKeeperNames(ObjectKey("demo", "zk"))
ADDRESS = NAMED.address(3, names.ZOOKEEPER_SECURE_PORT)
AUTHORITIES = (NAMED.authority_secret, NAMED.quorum_authority_secret)
IDENTITIES = (NAMED.clients_secret, NAMED.operator_secret, NAMED.members_secret)


def secrets(*names_of: str, life: timedelta = timedelta(days=3650)) -> dict[tuple[str, str], Json]:
    """Authorities as the operator stored them."""
    validity = Validity(datetime.now(UTC), life)
    return live(tuple(secret_of({"name": name}, authority_data(first_authority(name, fresh_key(), validity))) for name in names_of))


def saw(found: Objects, cluster: Any = SECURE) -> Ensemble:
    security = security_of(cluster, found) if cluster.has_certificates else None
    return Ensemble(cluster, found, fresh_password="fresh", security=security)


def planned(*parts: Any, cluster: Any = SECURE) -> Plan:
    seen = saw(objects(*parts), cluster)
    return with_identities(plan_zookeeper(seen), cluster, seen.identities)


def written(plan: Plan) -> list[str]:
    return [f"{each.manifest['kind']} {each.manifest['metadata']['name']}" for each in plan.actions if isinstance(each, (Apply, Create))]


# founding


def test_the_authorities_are_made_before_anything_else_and_never_again() -> None:
    first = planned()
    assert written(first) == [f"Secret {name}" for name in AUTHORITIES]
    assert all(isinstance(action, Create) and "ownerReferences" not in action.manifest["metadata"] for action in first.actions)
    assert not {f"Secret {name}" for name in AUTHORITIES} & set(written(planned(secrets(*AUTHORITIES))))


def test_certificates_are_written_before_the_members_that_mount_them() -> None:
    made = written(planned(secrets(*AUTHORITIES)))
    assert made[:3] == [f"Secret {name}" for name in IDENTITIES]
    assert made.index("StatefulSet zk-zookeeper") > made.index(f"Secret {NAMED.members_secret}")


def test_the_quorum_trusts_members_alone() -> None:
    security = security_of(SECURE, objects(secrets(*AUTHORITIES)))
    issued = {change.holder.secret: change.data for change in security.identities.changes}
    signers = {name: x509.load_pem_x509_certificate(data["ca.crt"].encode()).subject for name, data in issued.items()}
    assert signers[NAMED.clients_secret] == signers[NAMED.operator_secret] != signers[NAMED.members_secret]


def test_a_settled_ensemble_gets_no_new_certificate_and_is_looked_at_each_day() -> None:
    there = secrets(*AUTHORITIES)
    security = security_of(SECURE, objects(there))
    there |= live(tuple(secret_of({"name": change.holder.secret}, change.data) for change in security.identities.changes))
    again = security_of(SECURE, objects(there))
    assert again.identities.changes == ()
    assert again.read_at_start == security.read_at_start
    plan = with_identities(Plan(), SECURE, again.identities)
    assert (plan.actions, plan.wait, plan.requeue_after_seconds) == ((), None, LONGEST_SECONDS)


def test_another_certificate_of_the_quorum_restarts_members_and_another_one_of_the_client_port_does_not() -> None:
    there = secrets(*AUTHORITIES)
    due = security_of(SECURE, objects(there)).identities
    issued = live(tuple(secret_of({"name": each.holder.secret}, each.data) for each in due.changes))

    def without(name: str) -> Any:
        kept = {key: value for key, value in issued.items() if key[1] != name}
        return security_of(SECURE, objects(there, kept)).read_at_start

    before = security_of(SECURE, objects(there, issued)).read_at_start
    assert without(NAMED.clients_secret) == before
    assert without(NAMED.members_secret) != before


def test_clients_are_given_the_port_that_serves_them() -> None:
    summary = summarize_zookeeper(saw(objects(secrets(*AUTHORITIES))))
    assert summary.fields["address"] == ADDRESS
    left = datetime.fromisoformat(str(summary.fields["authorityExpires"])) - datetime.now(UTC)
    assert timedelta(days=3649) < left <= timedelta(days=3650)
    assert summarize_zookeeper(saw(objects(), PLAIN)).fields["address"] == NAMED.address(3)


# what is refused


FOUNDED = member_claims(*[names.FOUNDED] * 3)


def test_a_founded_ensemble_without_its_authority_gets_no_other_one() -> None:
    plan = planned(FOUNDED, secrets(NAMED.quorum_authority_secret))
    assert not any(isinstance(action, Create) for action in plan.actions)
    assert plan.wait is not None
    assert plan.wait.reason is Reason.INVALID_SECRET
    assert "spec.security.mode is TLS, but the Secret zk-zookeeper-authority of the authority is missing" in plan.wait.message


def test_an_ensemble_that_was_founded_with_certificates_is_not_started_without() -> None:
    plan = planned(FOUNDED, secrets(*AUTHORITIES), cluster=PLAIN)
    assert plan.actions == ()
    assert plan.wait is not None
    assert "spec.security.mode is Insecure, but the ensemble has certificates" in plan.wait.message


def test_a_damaged_authority_is_told_signs_nothing_and_no_member_is_touched() -> None:
    damaged = live((secret_of({"name": NAMED.authority_secret}, {"generation": "1", "signing.crt": "x", "signing.key": "y"}),))
    plan = planned(damaged, secrets(NAMED.quorum_authority_secret))
    assert written(plan) == [f"Secret {NAMED.members_secret}"]
    assert plan.wait is not None
    assert "signing.crt is no certificate in PEM" in plan.wait.message


# who shows what where


def test_the_port_tells_that_certificates_are_asked_for() -> None:
    assert secure_ensemble(ADDRESS, "demo") == NAMED
    assert operator_identity(ADDRESS, "demo") == ObjectKey("demo", "zk-zookeeper-operator")
    for plain in (NAMED.address(3), "zk-0:2281", f"{ADDRESS},zk-0:2281", ""):
        assert secure_ensemble(plain, "demo") is None


def test_a_resource_has_the_operator_show_no_certificate_of_another_namespace() -> None:
    asked: list[tuple[str, ObjectKey | None]] = []

    class Directory:
        def at(self, address: str, identity: ObjectKey | None = None) -> None:
            asked.append((address, identity))

    reader = ClusterReader(None, Directory(), None)  # type: ignore[arg-type]
    reader.znodes(ADDRESS, "demo")
    reader.znodes(ADDRESS, "somebody-elses")
    assert asked == [(ADDRESS, ObjectKey("demo", "zk-zookeeper-operator")), (ADDRESS, None)]


class Kubernetes:
    """Secrets by name, all owned by whoever asks."""

    def __init__(self, *parts: Any) -> None:
        self.found = objects(*parts)

    def secret(self, key: ObjectKey) -> dict[str, str] | None:

        document = self.found.get("Secret", key.name)
        return None if document is None else values_of_secret(document)

    def owned(self, _kind: str, _key: ObjectKey, _kinds: Sequence[Any]) -> Objects:
        return self.found


def test_bookies_readers_and_nodes_get_what_the_bookies_of_their_cluster_let_in() -> None:
    bookkeeper, herddb = quickstart("BookKeeperCluster"), quickstart("HerdDBCluster")
    kubernetes: Any = Kubernetes(secrets(NAMED.authority_secret))
    holders = (*bookkeeper_holders(bookkeeper), sql_nodes_holder(herddb))
    due = observe_identities(bookkeeper, holders, ADDRESS, kubernetes)
    subjects = {change.holder.secret: change.holder.subject.x500.rfc4514_string() for change in due.changes}
    assert subjects == {
        "bk-bookie-identity": "OU=0:bk,CN=bookies.bk",
        "bk-bookie-readers": "OU=0:bk,CN=readers.bk",
        "db-herddb-identity": "OU=0:bk,CN=nodes.db",
    }
    assert observe_identities(bookkeeper, holders, NAMED.address(3), kubernetes).changes == ()


def test_the_certificate_of_sql_nodes_can_be_verified_by_who_connects_to_a_node_to_any_or_to_a_leader() -> None:
    herddb, kubernetes = quickstart("HerdDBCluster"), Kubernetes(secrets(NAMED.authority_secret))
    (made,) = observe_identities(herddb, (sql_nodes_holder(herddb),), ADDRESS, kubernetes).changes  # type: ignore[arg-type]
    hosts = [
        herddb.names.host_of("db-herddb-1"),
        herddb.names.sql_address.partition(":")[0],
        TablespaceNames(ObjectKey("demo", "t")).leader_host,
    ]
    assert isinstance(judged("db-herddb-identity", made.data, hosts), TlsUsable)
    for pod in (NAMED.host(0), f"bk-bookie-0.{quickstart('BookKeeperCluster').names.service}.demo.svc", "t-leader.elsewhere.svc"):
        assert isinstance(judged("db-herddb-identity", made.data, [pod]), Problem)


def test_a_stack_says_that_it_accepts_plain_text_as_long_as_it_does() -> None:
    told = {
        cluster.spec.security.mode: summarize_zookeeper(saw(objects(secrets(*AUTHORITIES)), cluster)).conditions
        for cluster in (PLAIN, SECURE)
    }
    assert told["Insecure"]["Encrypted"] == Health(
        "False",
        Reason.PLAINTEXT_ACCEPTED,
        "plain text is accepted (spec.security.mode is Insecure): every client that reaches the ports can read and change the stack's data",
    )
    assert "Encrypted" not in told["TLS"]


def test_a_missing_authority_is_told_of_each_resource_on_the_ensemble() -> None:
    bookkeeper, nothing = quickstart("BookKeeperCluster"), Kubernetes()
    due = observe_identities(bookkeeper, bookkeeper_holders(bookkeeper), ADDRESS, nothing)  # type: ignore[arg-type]
    told = Wait(Reason.INVALID_SECRET, "the Secret zk-zookeeper-authority with the authority is missing: restore it from a backup")
    for wait in (None, Wait(Reason.WAITING_FOR_SECRET, "the Secret db-herddb-identity does not exist: the operator creates it")):
        assert with_identities(Plan((), wait), bookkeeper, due).wait == told
    other = Wait(Reason.WAITING_FOR_ZOOKEEPER, "the ensemble does not serve")
    assert with_identities(Plan((), other), bookkeeper, due).wait == other


def test_a_secret_without_a_certificate_is_named_by_who_connects() -> None:
    kubernetes: Any = Kubernetes(live((secret_of({"name": "zk-zookeeper-operator"}, {"tls.crt": "x"}),)))
    with pytest.raises(OSError, match=r"the Secret zk-zookeeper-operator in the namespace demo lacks tls.key and ca.crt"):
        read_identity(kubernetes, ObjectKey("demo", "zk-zookeeper-operator"))


@pytest.mark.parametrize("error", [ApiException(status=503, reason="Service Unavailable"), HTTPError("no route to host")])
def test_an_api_server_that_does_not_answer_ends_no_session(error: Exception) -> None:
    class Silent:
        def secret(self, _key: ObjectKey) -> None:
            raise error

    kubernetes: Any = Silent()
    with pytest.raises(OSError, match=r"the Secret zk-zookeeper-operator in the namespace demo can't be read"):
        read_identity(kubernetes, ObjectKey("demo", "zk-zookeeper-operator"))


def test_who_reads_the_log_is_told_which_certificate_to_show() -> None:
    bookkeeper = ready(quickstart("BookKeeperCluster"), zoo_keeper_address=ADDRESS, ledgers_root="/demo/bk/ledgers")
    secure = log_store(bookkeeper)
    assert secure is not None
    assert (secure.asks_for_certificates, secure.readers_secret, secure.bookies_secret) == (True, "bk-bookie-readers", "bk-bookie-identity")
    plain = log_store(with_status(bookkeeper, zoo_keeper_address=NAMED.address(3), ledgers_root="/demo/bk/ledgers"))
    assert plain is not None
    assert (plain.readers_secret, plain.bookies_secret) == (None, None)
    assert replace(plain, zookeeper_address=ADDRESS).readers_secret == secure.readers_secret
