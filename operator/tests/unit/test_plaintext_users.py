"""Who can't do without plain text, as the operator's own resources and pods tell."""

from __future__ import annotations

from typing import Any

from situations import quickstart

from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.zookeeper.plaintext_users import plaintext_users

CLUSTER = quickstart("ZooKeeperCluster")
PLAIN, SECURE = CLUSTER.names.address(3), CLUSTER.names.address(3, names.ZOOKEEPER_SECURE_PORT)


def bookkeeper(address: str, **spec: Any) -> Json:
    return {"metadata": {"name": "bk"}, "spec": spec or {"zooKeeperRef": {"name": "zk"}}, "status": {"zooKeeperAddress": address}}


def database(**spec: Any) -> Json:
    return {"metadata": {"name": "db"}, "spec": {"bookKeeperRef": {"name": "bk"}, **spec}}


def pod(kind: str, owner: str, name: str, secret: str | None = None, **more: Any) -> Json:
    labels = {names.OWNER_KIND_LABEL: kind, names.OWNER_NAME_LABEL: owner}
    volumes = [] if secret is None else [{"name": "identity", "secret": {"secretName": secret}}]
    return {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {"volumes": volumes, **more}}


def users(*documents: Json) -> tuple[str, ...]:
    """Of a namespace with these resources and pods."""
    found = Objects({(each["kind"], each["metadata"]["name"]): each for each in documents if "kind" in each})
    bookkeepers, databases = ([each for each in documents if each["metadata"]["name"] == name] for name in ("bk", "db"))
    return plaintext_users(CLUSTER, found, bookkeepers, databases)


def test_nobody_is_left_once_all_pods_show_certificates() -> None:
    secure = (pod("BookKeeperCluster", "bk", "bk-bookie-0-0", "bk-bookie-identity"), pod("HerdDBCluster", "db", "n", "db-herddb-identity"))
    assert users(bookkeeper(SECURE), database(tls={"secretName": "of-the-user"}), *secure) == ()


def test_a_cluster_some_of_whose_bookies_have_no_certificate_is_named_with_these() -> None:
    bookies = (pod("BookKeeperCluster", "bk", "bk-bookie-0-0", "bk-bookie-identity"), pod("BookKeeperCluster", "bk", "bk-bookie-1-0"))
    assert users(bookkeeper(PLAIN), *bookies) == (
        "the BookKeeperCluster bk (not all its bookies have certificates)",
        "the pod bk-bookie-1-0",
    )


def test_a_database_that_would_take_sql_in_plain_text_is_named_with_what_to_set() -> None:
    assert users(bookkeeper(SECURE), database()) == (
        "the HerdDBCluster db (it has no spec.tls: set spec.tls.secretName to db-herddb-identity and spec.tls.plaintext to Accepted)",
    )


def test_a_job_that_was_told_the_plain_port_is_waited_for_until_it_has_ended() -> None:
    job = pod("Checkpoint", "once", "once-checkpoint-x", containers=[{"args": ["--zookeeper", PLAIN]}])
    assert users(bookkeeper(SECURE), job) == ("the pod once-checkpoint-x",)
    assert users(bookkeeper(SECURE), {**job, "status": {"phase": "Succeeded"}}) == ()
    between_two_pods = {"kind": "Job", "metadata": job["metadata"], "spec": {"template": {"spec": job["spec"]}}}
    assert users(bookkeeper(SECURE), between_two_pods) == ("the Job once-checkpoint-x",)
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert users(bookkeeper(SECURE), {**between_two_pods, "status": ended}) == ()
    moved = pod("Checkpoint", "once", "once-checkpoint-x", containers=[{"args": ["--zookeeper", SECURE]}])
    assert users(bookkeeper(SECURE), moved) == ()


def test_bookies_that_were_told_the_plain_port_by_its_address_stay_there() -> None:
    assert users(bookkeeper(PLAIN, zooKeeperAddress=PLAIN)) == (
        "the BookKeeperCluster bk (its spec.zooKeeperAddress is the port for plain text)",
    )
    assert users(bookkeeper("elsewhere:2181", zooKeeperAddress="elsewhere:2181")) == ()
