"""What OpenShift does: servers and a job run as a user that no image knows, in group 0, from the operator's own pod templates."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ReplicationAudit, ZooKeeperCluster
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, Founded, build_autorecovery, build_bookie, build_bookies_shared
from herdkeeper.bookkeeper.state.racks import placement_of
from herdkeeper.clients.kubernetes import KubernetesReader, LiveSource
from herdkeeper.clients.zookeeper import EnsembleSessions
from herdkeeper.codecs.herddb.users import SqlUser
from herdkeeper.engine.execute_metadata import ensure_znode, format_ledgers_root
from herdkeeper.herddb.build import build_herddb, build_herddb_secret
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.shared.objects import Objects
from herdkeeper.spark.build_job import build_audit
from herdkeeper.spark.sources import AuditSource
from herdkeeper.sql.connection import DEFAULT_TABLESPACE, Address, Connection, Credentials
from herdkeeper.zookeeper.build import build_zookeeper, build_zookeeper_secret
from herdkeeper.zookeeper.state import Ensemble
from herdkeeper_e2e.assigned_pods import AssignedPods, assigned_pods
from herdkeeper_e2e.built_images import SPARK

Json = dict[str, Any]
ONE_COPY = {"ensembleSize": 1, "writeQuorum": 1, "ackQuorum": 1}
LOGIN = Credentials("admin", "only-for-a-test")


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[AssignedPods]:
    with assigned_pods(tmp_path, f"herdkeeper-{secrets.token_hex(4)}") as pods:
        yield pods


def read(kind: Any, **spec: Any) -> Any:
    """A resource on a platform that assigns users and groups."""
    document = {"metadata": {"name": "quick", "namespace": "demo", "uid": "1"}, "spec": spec}
    return KubernetesReader(LiveSource(None), assigned_ids=True).model(kind, document)


def serving(pods: AssignedPods, name: str, made: tuple[Json, ...], domain: str) -> str:
    """Starts the pod of the last object, and waits until it serves."""
    pods.make(made)
    spec = made[-1]["spec"]["template"]["spec"]
    # a server that can't use its image's archive of classes ends
    spec["containers"][0].setdefault("env", []).append({"name": "JDK_JAVA_OPTIONS", "value": "-Xshare:on"})
    claims = made[-1]["spec"].get("volumeClaimTemplates", ())
    volumes = [{"name": claim["metadata"]["name"], "persistentVolumeClaim": {}} for claim in claims]
    started = pods.start(name, {**spec, "volumes": [*spec["volumes"], *volumes]}, domain)
    pods.wait(started, spec)
    return started


def test_servers_and_a_job_run_as_a_user_that_their_images_do_not_know(pods: AssignedPods) -> None:
    zookeeper = read(ZooKeeperCluster, replicas=1, security={"mode": "Insecure"})
    ensemble = Ensemble(zookeeper, Objects({}), password="given")
    members = (build_zookeeper_secret(ensemble), *build_zookeeper(ensemble))
    member = serving(pods, "quick-zookeeper-0", members, f"{zookeeper.names.members_service}.demo.svc")

    bookies = read(BookKeeperCluster, zooKeeperRef={"name": "quick"})
    herddb = read(HerdDBCluster, bookKeeperRef={"name": "quick"}, replicas=1, ledgers=ONE_COPY)
    sessions = EnsembleSessions()
    znodes = sessions.at(f"{pods.address(member)}:2181")
    format_ledgers_root(znodes, bookies.names.ledgers_root)
    ensure_znode(znodes, herddb.names.herd_root)
    sessions.stop()

    address, bookie = zookeeper.address, BookieIdentity(0, "quick-bookie-0-abc123")
    shared = build_bookies_shared(bookies, address, Founded("", frozenset(), frozenset()))
    serving(pods, "quick-bookie-0-0", (*shared, build_bookie(bookies, bookie, address)), f"{bookies.names.service}.demo.svc")
    serving(pods, "quick-autorecovery-0", build_autorecovery(bookies, address, {}), "")

    log = LogStore(address, bookies.names.ledgers_root, placement_of(bookies, {}), bookies.key)
    given = build_herddb_secret(herddb, "credentials", (SqlUser(LOGIN.username, LOGIN.password),), "a-token")
    nodes = (given, *build_herddb(herddb, log, "credentials"))
    node = serving(pods, "quick-herddb-0", nodes, f"{herddb.names.nodes_service}.demo.svc")
    with Connection.connect(Address(pods.address(node), 7000), LOGIN, DEFAULT_TABLESPACE) as connection:
        connection.execute("CREATE TABLE kept (id int PRIMARY KEY)")
        assert connection.execute("INSERT INTO kept VALUES (1)") == 1

    audit = read(ReplicationAudit, bookKeeperRef={"name": "quick"}, job={"localThreads": 1})
    (job,) = build_audit(audit, AuditSource(address, bookies.names.ledgers_root), SPARK)
    driver = pods.start("quick-audit", job["spec"]["template"]["spec"])
    assert pods.end_of(driver) == 0, pods.log(driver)
    assert (pods.folder / "quick-audit-termination-log").read_text().startswith("{")
