"""The built objects, compared with manifests that a person has read."""

from __future__ import annotations

import datetime
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from situations import member_claims, objects, with_status

from herdkeeper.api import (
    BookKeeperCluster,
    Checkpoint,
    HerdDBCluster,
    ReplicationAudit,
    ScheduledCheckpoint,
    Tablespace,
    ZooKeeperCluster,
)
from herdkeeper.api.default_images import SHIPPED_IMAGES, image_of
from herdkeeper.api.job import Destination, Encryption
from herdkeeper.bookkeeper.build.bookies import (
    BookieIdentity,
    Founded,
    build_autorecovery,
    build_bookie,
    build_bookie_claims,
    build_bookie_token,
    build_bookies_shared,
)
from herdkeeper.bookkeeper.build.racks import build_racks
from herdkeeper.bookkeeper.drain.build import DrainSource, build_move, build_retirement
from herdkeeper.bookkeeper.state.racks import Rack, placement_of
from herdkeeper.codecs.herddb.users import SqlUser
from herdkeeper.codecs.herddb.users import invalid_part as unfit_of_user
from herdkeeper.codecs.zookeeper.membership import Membership, Role
from herdkeeper.herddb.build import LogStore, build_herddb, build_herddb_secret
from herdkeeper.herddb.log.build_archive import build_archiver
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.herddb.tablespace.build import build_connection_secret, build_leader_service
from herdkeeper.jobs.schedule.build import build_drill_checkpoint
from herdkeeper.planning.network_policies import build_server_policies
from herdkeeper.shared.quantity import MIB, bytes_of
from herdkeeper.spark.build_job import build_audit, build_checkpoint, build_drill, build_removal, build_restore
from herdkeeper.spark.object_store import StoreSecrets
from herdkeeper.spark.sources import ArchiveSource, AuditSource, CheckpointSource, DrillSource, Login, OpenWindow, RestoreSource
from herdkeeper.zookeeper.build import build_zookeeper, build_zookeeper_claim, build_zookeeper_secret
from herdkeeper.zookeeper.state import Ensemble, EnsembleSecurity, first_membership, server_of

GOLDEN = Path(__file__).parent / "golden"
FOUNDED = Founded("an-instance", frozenset(), frozenset())
ZOOKEEPER = "quick-zookeeper-0.quick-zookeeper-members.demo.svc:2181"
META = {"name": "quick", "namespace": "demo", "uid": "11111111-2222-3333-4444-555555555555"}
EXECUTORS = {"executors": {"instances": 2}}
RACKS = {"quick-bookie-0-0.quick-bookie.demo.svc": Rack("zone-a", "north")}
SUNDAY = datetime.datetime(2026, 5, 10, 5, tzinfo=datetime.UTC)
CLAIM = {"persistentVolumeClaim": {"claimName": "out"}}
ADMINISTRATOR, OTHER = SqlUser("admin", "given"), SqlUser("orders", "chosen", "orders-login")
ON_VOLUME = Destination.model_validate({"persistentVolumeClaim": {"claimName": "out"}})
STORE = {
    "uri": "s3://backups/flights",
    "endpoint": "https://store.storage.svc:9000",
    "region": "eu-central-1",
    "credentialsSecretRef": {"name": "store-keys"},
    "caSecretRef": {"name": "store-ca"},
}
SEALED = CLAIM | {"encryption": {"keysSecretRef": {"name": "backup-keys"}, "currentKey": "2026-11"}}
SPARK = "herdkeeper/spark:0.2.0"
ARCHIVED = Destination.model_validate({"persistentVolumeClaim": {"claimName": "archives"}})


def encrypted_at(place: Destination, secret: str) -> Destination:
    keys = Encryption.model_validate({"keysSecretRef": {"name": secret}, "currentKey": "2026-11"})
    return place.model_copy(update={"encryption": keys})


def read(kind: Any, **spec: Any) -> Any:
    return SHIPPED_IMAGES.completed(kind.model_validate({"metadata": META, "spec": spec}))


def bookkeeper(**spec: Any) -> BookKeeperCluster:
    return read(BookKeeperCluster, zooKeeperRef={"name": "quick"}, **spec)


def secured() -> tuple[Any, ...]:
    """What shows certificates in a stack that was founded with them."""
    zookeeper, bookies = with_status(read(ZooKeeperCluster), authority_expires="2036-01-01T00:00:00Z"), bookkeeper()
    address = zookeeper.address
    log = LogStore(address, "/demo/quick/ledgers", placement_of(bookies, RACKS), bookies.key)
    herddb = read(HerdDBCluster, bookKeeperRef={"name": "quick"})
    archived = read(Tablespace, herdDBRef={"name": "db"}, tablespaceName="flights", log={"archive": {"destination": CLAIM}})
    audit = read(ReplicationAudit, bookKeeperRef={"name": "quick"}, job=EXECUTORS)
    restored = read(Tablespace, herdDBRef={"name": "db"}, tablespaceName="restored", bootstrap={"checkpoint": {"name": "flights-1"}})
    checkpoint = read(Checkpoint, tablespaceRef={"name": "flights"}, destination=CLAIM, job=EXECUTORS)
    source = CheckpointSource(
        *(address, "/demo/quick/ledgers", "/demo/quick/herd", "flights", None, "follower:9845", "credentials"),
        identity=log.readers_secret,
        with_tls=frozenset({"follower:9845"}),
        authorities="db-herddb-identity",
    )
    bookie, drain = BookieIdentity(0, "quick-bookie-0-abc123"), DrainSource(address, SPARK)
    restore = RestoreSource(
        address, "/demo/quick/herd", ON_VOLUME, "i/u/manifests/m.json", Login("credentials"), identity=log.readers_secret
    )
    security = EnsembleSecurity(read_at_start={"/tls/clients/ca.crt": "certificates"})
    return (
        *build_zookeeper(Ensemble(zookeeper, objects(), password="given", security=security)),
        *build_server_policies(zookeeper, "herdkeeper-system"),
        *build_bookies_shared(bookies, address, FOUNDED),
        build_bookie(bookies, bookie, address),
        *build_autorecovery(bookies, address, RACKS),
        build_move(bookies, bookie, 1, drain),
        build_retirement(bookies, bookie, drain),
        *build_herddb(herddb, log, "quick-herddb-credentials"),
        *build_checkpoint(checkpoint, source, SPARK),
        *build_audit(audit, AuditSource(address, "/demo/quick/ledgers", identity=log.readers_secret), SPARK),
        *build_restore(restored, restore, SPARK),
        build_archiver(archived, log, "/demo/quick/herd", SPARK),
    )


def built() -> dict[str, tuple[Any, ...]]:
    zookeeper, bookies = read(ZooKeeperCluster, security={"mode": "Insecure"}), bookkeeper()
    striped = bookkeeper(ledgers={"size": "20Gi", "volumes": 3})
    bookie = BookieIdentity(0, "quick-bookie-0-abc123")
    herddb = read(HerdDBCluster, bookKeeperRef={"name": "quick"})
    encrypted = read(HerdDBCluster, bookKeeperRef={"name": "quick"}, tls={"secretName": "quick-tls"})
    scraper = {"podLabels": {"app": "prometheus"}, "namespaceLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    limited = read(HerdDBCluster, bookKeeperRef={"name": "quick"}, clients=[{"podLabels": {"app": "shop"}}], scrapers=[scraper])
    log = LogStore(ZOOKEEPER, "/demo/quick/ledgers", placement_of(bookies, RACKS), bookies.key)
    tablespace = read(Tablespace, herdDBRef={"name": "db"}, tablespaceName="flights")
    restored = read(Tablespace, herdDBRef={"name": "db"}, tablespaceName="restored", bootstrap={"checkpoint": {"name": "flights-1"}})
    archives = {"persistentVolumeClaim": {"claimName": "archives"}}
    then = {"timestamp": "2026-11-21T14:30:00Z"}
    as_it_was = read(
        Tablespace, herdDBRef={"name": "db"}, bootstrap={"checkpoint": {"name": "flights-1"}, "archive": archives, "target": then}
    )
    of_its_archive = read(
        Tablespace,
        herdDBRef={"name": "db"},
        bootstrap={"archive": {**CLAIM, "folder": "i/u"}, "target": {"lsn": {"ledgerId": 3, "entryId": 9}}, "job": EXECUTORS},
    )
    archived = read(Tablespace, herdDBRef={"name": "db"}, tablespaceName="flights", log={"archive": {"destination": CLAIM}})
    in_store = read(
        Tablespace, herdDBRef={"name": "db"}, tablespaceName="flights", log={"archive": {"destination": {"objectStore": STORE}}}
    )
    source = CheckpointSource(
        ZOOKEEPER, "/demo/quick/ledgers", "/demo/quick/herd", "flights", "leader:9845", "follower:9845", "quick-herddb-credentials"
    )
    checkpoint = read(Checkpoint, tablespaceRef={"name": "flights"}, destination=CLAIM)
    stored = read(
        Checkpoint,
        tablespaceRef={"name": "flights"},
        destination={"objectStore": STORE},
        bytesPerSecondPerBookie="20Mi",
        job=EXECUTORS,
    )
    azure = {"objectStore": {"uri": "az://backups/flights", "storageAccount": "account", "serviceAccountName": "backups"}}
    in_azure = read(Checkpoint, tablespaceRef={"name": "flights"}, destination=azure, job=EXECUTORS)
    log_in_azure = read(Tablespace, herdDBRef={"name": "db"}, tablespaceName="flights", log={"archive": {"destination": azure}})
    google = {"objectStore": {"uri": "gs://backups", "credentialsSecretRef": {"name": "google-key"}}}
    in_google = read(Checkpoint, tablespaceRef={"name": "flights"}, destination=google)
    sealed = read(Checkpoint, tablespaceRef={"name": "flights"}, destination=SEALED, job=EXECUTORS)
    with_keys = CLAIM | {"encryption": {"keysSecretRef": {"name": "archive-keys"}}}
    sealed_log = read(Tablespace, herdDBRef={"name": "db"}, tablespaceName="flights", log={"archive": {"destination": with_keys}})
    audit = read(ReplicationAudit, bookKeeperRef={"name": "quick"}, job=EXECUTORS)
    in_a_window = read(
        ReplicationAudit,
        bookKeeperRef={"name": "quick"},
        ledgers=[7],
        filter={
            "tablespaces": [{"herdDBRef": {"name": "db"}, "name": "orders"}],
            "states": ["Closed"],
            "bookies": ["quick-bookie-1-abc", "quick-bookie-2-def"],
            "ledgerRanges": [{"first": 100, "last": 199}],
        },
        window={"from": "22:00", "to": "05:00", "timeZone": "Europe/Rome"},
        destination={"persistentVolumeClaim": {"claimName": "audits"}},
    )
    drilled = read(
        ScheduledCheckpoint,
        schedule="0 3 * * *",
        template={"tablespaceRef": {"name": "flights"}, "destination": CLAIM},
        drill={"schedule": "0 5 * * SUN"},
    )
    ensemble = Ensemble(zookeeper, objects(), password="given")
    return {
        "secured": secured(),
        "zookeeper": (
            build_zookeeper_secret(ensemble),
            build_zookeeper_claim(ensemble, 0),
            *build_zookeeper(ensemble),
        ),
        "bookkeeper": (
            build_bookie_token(bookies, "a-token"),
            *build_bookies_shared(bookies, ZOOKEEPER, FOUNDED),
            *build_bookie_claims(bookies, bookie),
            build_bookie(bookies, bookie, ZOOKEEPER),
            build_racks(bookies, RACKS),
            *build_autorecovery(bookies, ZOOKEEPER, RACKS),
        ),
        "bookkeeper-ledger-volumes": (
            *build_bookies_shared(striped, ZOOKEEPER, FOUNDED),
            *build_bookie_claims(striped, bookie),
            build_bookie(striped, bookie, ZOOKEEPER),
        ),
        "herddb": (
            build_herddb_secret(herddb, "quick-herddb-credentials", (ADMINISTRATOR, OTHER), "a-token"),
            *build_herddb(herddb, log, "quick-herddb-credentials"),
        ),
        "network-policies": (
            *(policy for each in (zookeeper, bookies, herddb) for policy in build_server_policies(each, "herdkeeper-system")),
            *build_server_policies(limited, "herdkeeper-system"),
        ),
        "herddb-encrypted": build_herddb(encrypted, log, "quick-herddb-credentials"),
        "tablespace": (
            build_leader_service(tablespace, "db-herddb-1"),
            build_connection_secret(tablespace, ZOOKEEPER, UserCredentials("admin", "given")),
        ),
        "tablespace-encrypted": (build_connection_secret(tablespace, ZOOKEEPER, UserCredentials("admin", "given"), "certificates"),),
        "checkpoint": build_checkpoint(checkpoint, source, "herdkeeper/spark:0.2.0"),
        "checkpoint-by-workload-identity": (
            *build_checkpoint(in_azure, source, SPARK),
            build_removal(in_azure, "i/u/manifests/m.json", SPARK),
            build_archiver(log_in_azure, log, "/demo/quick/herd", SPARK, StoreSecrets({})),
        ),
        "checkpoint-in-google-beside-an-archive-in-azure": build_checkpoint(
            in_google, replace(source, archive=ArchiveSource("flights", log_in_azure.spec.log.archive.destination)), SPARK
        ),
        "checkpoint-in-object-store": (*build_checkpoint(stored, source, SPARK), build_removal(stored, "i/u/manifests/m.json", SPARK)),
        "checkpoint-with-keys": (*build_checkpoint(sealed, source, SPARK), build_removal(sealed, "i/u/manifests/m.json", SPARK)),
        "restore-with-keys": build_restore(
            restored,
            RestoreSource(ZOOKEEPER, "/demo/db/herd", sealed.spec.destination, "i/u/manifests/m.json", Login("db-credentials")),
            SPARK,
        ),
        "restore-from-object-store": build_restore(
            restored,
            RestoreSource(ZOOKEEPER, "/demo/db/herd", stored.spec.destination, "i/u/manifests/m.json", Login("db-credentials")),
            SPARK,
        ),
        "restore": build_restore(
            restored,
            RestoreSource(ZOOKEEPER, "/demo/db/herd", ON_VOLUME, "i/u/manifests/m.json", Login("db-credentials")),
            "herdkeeper/spark:0.2.0",
        ),
        "restore-to-a-moment": build_restore(
            as_it_was,
            RestoreSource(
                ZOOKEEPER,
                "/demo/db/herd",
                encrypted_at(ON_VOLUME, "backup-keys"),
                "i/u/manifests/m.json",
                Login("db-credentials"),
                archive=ArchiveSource("flights", encrypted_at(ARCHIVED, "segment-keys")),
            ),
            SPARK,
        ),
        "restore-to-a-moment-of-an-archive-alone": build_restore(
            of_its_archive,
            RestoreSource(ZOOKEEPER, "/demo/db/herd", ON_VOLUME, "i/u", Login("db-credentials"), archive=ArchiveSource(None, ON_VOLUME)),
            SPARK,
        ),
        "restore-encrypted": build_restore(
            restored,
            RestoreSource(ZOOKEEPER, "/demo/db/herd", ON_VOLUME, "i/u/manifests/m.json", Login("db-credentials", "quick-tls")),
            "herdkeeper/spark:0.2.0",
        ),
        "restore-drill": (
            build_drill_checkpoint(drilled, SUNDAY, "2026-05-03T12:00:00.000Z"),
            build_drill(
                drilled,
                DrillSource(drilled.spec.template.destination, "i/u/manifests/m.json", image_of(herddb), "quick-202605100500-drill"),
                SPARK,
            ),
        ),
        "archive": (build_archiver(archived, log, "/demo/db/herd", "herdkeeper/spark:0.2.0"),),
        "archive-with-keys": (
            build_archiver(sealed_log, log, "/demo/db/herd", SPARK),
            *build_checkpoint(sealed, replace(source, archive=ArchiveSource("quick", sealed_log.spec.log.archive.destination)), SPARK)[-1:],
        ),
        "archive-in-object-store": (
            build_archiver(in_store, log, "/demo/db/herd", SPARK, StoreSecrets({"s/k": "given"})),
            *build_checkpoint(
                stored.model_copy(update={"spec": stored.spec.model_copy(update={"destination": ON_VOLUME})}),
                replace(source, archive=ArchiveSource("quick", in_store.spec.log.archive.destination)),
                SPARK,
            ),
        ),
        "audit": build_audit(audit, AuditSource(ZOOKEEPER, "/demo/quick/ledgers"), "herdkeeper/spark:0.2.0"),
        "audit-in-a-window": build_audit(
            in_a_window,
            AuditSource(ZOOKEEPER, "/demo/quick/ledgers"),
            SPARK,
            OpenWindow(datetime.datetime(2026, 6, 1, 23, 30, tzinfo=datetime.UTC), datetime.datetime(2026, 6, 2, 3, tzinfo=datetime.UTC)),
        ),
    }


@pytest.mark.parametrize("name", built())
def test_the_objects_are_the_golden_ones(name: str) -> None:
    file = GOLDEN / f"{name}.yaml"
    found = [yaml.safe_load(yaml.safe_dump(each)) for each in built()[name]]
    if os.environ.get("HERDKEEPER_UPDATE_GOLDEN") == "1":
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump_all(found, sort_keys=True, width=140))
    assert file.exists(), f"{file} is missing: run with HERDKEEPER_UPDATE_GOLDEN=1, then read the difference"
    assert found == list(yaml.safe_load_all(file.read_text())), "run with HERDKEEPER_UPDATE_GOLDEN=1, then read the difference"


def test_founding_ends_without_rolling_the_members() -> None:
    cluster = read(ZooKeeperCluster)
    claims = ({}, member_claims("true", "true", "true", cluster="quick"))
    before, after = (build_zookeeper(Ensemble(cluster, objects(found))) for found in claims)
    assert before[0]["data"]["founding"] == "true"
    assert after[0]["data"]["founding"] == "false"
    assert before[-1] == after[-1]


def test_what_a_member_keeps_takes_no_more_than_half_of_its_volume() -> None:
    """The other half is for the hour until the next purge."""
    cluster = SHIPPED_IMAGES.completed(ZooKeeperCluster.model_validate({"metadata": META, "spec": {}}))
    lines = dict(line.split("=", 1) for line in build_zookeeper(Ensemble(cluster, objects({})))[0]["data"]["zoo.cfg"].splitlines())
    log, snapshots = int(lines["snapSizeLimitInKb"]) << 10, int(lines["autopurge.snapRetainCount"])
    largest_snapshot = bytes_of(cluster.spec.resources.memory) // 2  # the heap, which holds the same
    # the oldest snapshot may need the log from before it
    assert (snapshots + 1) * log + snapshots * largest_snapshot <= bytes_of(cluster.spec.storage.size) // 2
    allocated_at_once = 64 * MIB
    assert log // 2 >= 2 * allocated_at_once, "each transaction would bring a snapshot"


def test_a_bookie_is_not_ended_while_it_replays_a_full_journal_from_a_slow_disk() -> None:
    """The replay would begin anew, and never end."""
    cluster = SHIPPED_IMAGES.completed(BookKeeperCluster.model_validate({"metadata": META, "spec": {"zooKeeperAddress": ZOOKEEPER}}))
    (container,) = build_bookie(cluster, BookieIdentity(0, "an-id"), ZOOKEEPER)["spec"]["template"]["spec"]["containers"]
    probe = container["startupProbe"]
    slow_bytes_per_second = 8 * MIB
    assert probe["periodSeconds"] * probe["failureThreshold"] >= bytes_of(cluster.spec.journal.size) // slow_bytes_per_second
    assert "initialDelaySeconds" not in container["livenessProbe"], "it begins once the startup probe has succeeded"


def test_a_changed_membership_reaches_new_members_and_restarts_none() -> None:
    cluster = read(ZooKeeperCluster)
    first = first_membership(cluster, range(3))
    joined = Membership(0x100000007, (*first.servers, server_of(cluster, 3, Role.OBSERVER)))
    claims = objects(member_claims("true", cluster="quick"))
    before, after = (build_zookeeper(Ensemble(cluster, claims, membership=members)) for members in (first, joined))
    assert after[0]["data"]["zoo.cfg.dynamic.100000007"] == after[0]["data"]["zoo.cfg.dynamic"] == joined.file
    assert joined.file.splitlines()[3].endswith(":observer;2181")
    assert before[-1]["spec"] | {"replicas": 4} == after[-1]["spec"]


def test_another_password_rolls_the_members_which_know_its_digest_only() -> None:
    cluster = read(ZooKeeperCluster)
    one, other = (build_zookeeper(Ensemble(cluster, objects(), password=each)) for each in ("one", "other"))
    assert one[-1]["spec"]["template"]["metadata"]["annotations"] != other[-1]["spec"]["template"]["metadata"]["annotations"]
    (mounted,) = [volume for volume in one[-1]["spec"]["template"]["spec"]["volumes"] if volume["name"] == "reconfig"]
    assert [item["key"] for item in mounted["secret"]["items"]] == ["super-digest"]


def test_a_changed_configuration_rolls_the_bookies() -> None:
    bookie = BookieIdentity(0, "quick-bookie-0-abc123")
    one, other = (build_bookie(bookkeeper(config=lines), bookie, ZOOKEEPER) for lines in ({}, {"numAddWorkerThreads": "2"}))
    assert one["spec"]["template"]["metadata"]["annotations"] != other["spec"]["template"]["metadata"]["annotations"]


def test_both_claims_of_a_bookie_carry_its_identity_and_outlive_its_owner() -> None:
    for claim in build_bookie_claims(bookkeeper(), BookieIdentity(3, "quick-bookie-3-abc123")):
        assert claim["metadata"]["annotations"] == {"herdkeeper.io/bookie-id": "quick-bookie-3-abc123"}
        assert "ownerReferences" not in claim["metadata"]


def test_a_job_without_executors_gets_no_rights() -> None:
    audit = read(ReplicationAudit, bookKeeperRef={"name": "quick"})
    (job,) = build_audit(audit, AuditSource(ZOOKEEPER, "/demo/quick/ledgers"), "spark:1")
    assert job["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("username", "password", "unfit"),
    [
        ("admin", "a b", None),
        ("", "a", "username"),
        ("ad,min", "a", "username"),
        ("admin", "a\rb", "password"),
        ("admin", "a\n", "password"),
        ("admin", " a", "password"),
        ("admin", "a\0b", "password"),
        ("admin", "not UTF-8: \ufffd", "password"),
        ("admin", "#a", None),
        ("#admin", "a", "username"),
    ],
)
def test_which_credentials_of_a_user_the_users_file_cannot_hold_is_told(username: str, password: str, unfit: str | None) -> None:
    assert unfit_of_user(username, password) == unfit


def test_a_drill_with_a_storage_class_gets_a_volume_that_goes_with_its_pod() -> None:
    storage = {"size": "50Gi", "storageClassName": "fast"}
    schedule = read(
        ScheduledCheckpoint,
        schedule="0 3 * * *",
        template={"tablespaceRef": {"name": "flights"}, "destination": CLAIM},
        drill={"schedule": "0 5 * * SUN", "server": {"storage": storage}},
    )
    job = build_drill(schedule, DrillSource(schedule.spec.template.destination, "m.json", "herdkeeper/herddb:0.2.0", "j"), SPARK)
    (data,) = [volume for volume in job["spec"]["template"]["spec"]["volumes"] if volume["name"] == "data"]
    claim = data["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert (claim["storageClassName"], claim["resources"]["requests"]["storage"]) == ("fast", "50Gi")


def test_a_password_that_the_users_file_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="password can't stand in HerdDB's users file"):
        build_herddb_secret(read(HerdDBCluster, bookKeeperRef={"name": "quick"}), "s", (SqlUser("admin", "a,b"),), "a-token")
