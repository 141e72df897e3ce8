"""What a resource may not say: each refusal names the field, the value, the problem and the fix."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from situations import objects, with_status

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, Tablespace, ZooKeeperCluster
from herdkeeper.api.checkpoint import Moment
from herdkeeper.api.default_images import SHIPPED_IMAGES
from herdkeeper.api.tablespace import ManifestPath, TablespaceFolder
from herdkeeper.bookkeeper.build.bookies import Founded, build_autorecovery, build_bookies_shared
from herdkeeper.bookkeeper.state.known_config import BOOKKEEPER, unknown_keys
from herdkeeper.bookkeeper.validate import bookkeeper_refusals
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.herddb.tablespace.validate import tablespace_refusals
from herdkeeper.herddb.validate import herddb_refusals
from herdkeeper.planning.refusal import Refusal, unreadable_refusals
from herdkeeper.shared import owned_config
from herdkeeper.shared.quantity import bytes_of
from herdkeeper.shared.time import moment_of
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.state import NOT_READ, Ensemble, first_membership
from herdkeeper.zookeeper.validate import zookeeper_refusals
from herdkeeper_e2e.defaulting import stored


def zookeeper(name: str = "zk", **spec: Any) -> ZooKeeperCluster:
    return made("ZooKeeperCluster", name, spec)


def bookkeeper(name: str = "bk", **spec: Any) -> BookKeeperCluster:
    return made("BookKeeperCluster", name, {"zooKeeperRef": {"name": "zk"}, **spec})


def herddb(name: str = "db", **spec: Any) -> HerdDBCluster:
    return made("HerdDBCluster", name, {"bookKeeperRef": {"name": "bk"}, **spec})


def tablespace(name: str = "flights", metadata: dict[str, Any] | None = None, **spec: Any) -> Tablespace:
    return made("Tablespace", name, {"herdDBRef": {"name": "db"}, **spec}, metadata)


def made(kind: str, name: str, spec: dict[str, Any], metadata: dict[str, Any] | None = None) -> Any:
    return SHIPPED_IMAGES.completed(stored({"kind": kind, "metadata": {"name": name, **(metadata or {})}, "spec": spec}))


def paths(refusals: tuple[Refusal, ...]) -> list[str]:
    return [refusal.path for refusal in refusals]


def refused_of_zookeeper(cluster: ZooKeeperCluster) -> tuple[Refusal, ...]:
    return zookeeper_refusals(Ensemble(cluster, objects()))


@pytest.mark.parametrize(
    ("voters", "replicas", "allowed", "refused"),
    [(3, 1, False, True), (5, 1, False, True), (3, 1, True, False), (5, 3, False, False), (1, 1, False, False), (None, 1, False, False)],
)
def test_an_ensemble_of_three_does_not_become_a_single_member_unless_that_is_said(voters, replicas, allowed, refused) -> None:
    """Also where the rule on changes does not see it: a resource that is declared anew finds the ensemble of its retained volumes."""
    cluster = zookeeper(replicas=replicas, allowSingleMember=allowed)
    membership = NOT_READ if voters is None else first_membership(cluster, range(voters))
    found = zookeeper_refusals(Ensemble(cluster, objects(), membership=membership))
    assert paths(found) == (["spec.replicas"] if refused else [])
    assert all("allowSingleMember" in refusal.fix for refusal in found)


@pytest.mark.parametrize(("bookies", "refused"), [(2, ["spec.ledgers.ensembleSize"]), (3, []), (4, [])])
def test_an_ensemble_beyond_the_bookies_is_refused(bookies: int, refused: list[str]) -> None:
    assert paths(herddb_refusals(herddb(), bookkeeper(bookies=bookies))) == refused


def test_an_ensemble_can_not_be_judged_while_there_are_no_bookies_to_compare_with() -> None:
    assert herddb_refusals(herddb(ledgers={"ensembleSize": 15}), None) == ()


@pytest.mark.parametrize(("replicas", "refused"), [(1, []), (2, []), (3, ["spec.replicas"])])
def test_a_tablespace_with_more_replicas_than_sql_nodes_is_refused(replicas: int, refused: list[str]) -> None:
    assert paths(tablespace_refusals(tablespace(replicas=replicas), herddb(replicas=2))) == refused


def test_the_older_of_two_tablespaces_keeps_the_sql_name() -> None:
    older = tablespace("flights", {"creationTimestamp": "2026-01-01T00:00:00Z"})
    newer = tablespace("again", {"creationTimestamp": "2026-01-02T00:00:00Z"}, tablespaceName="flights")
    assert tablespace_refusals(older, None, (older, newer)) == ()
    assert paths(tablespace_refusals(newer, None, (older, newer))) == ["spec.tablespaceName"]


@pytest.mark.parametrize(
    ("made", "made_by_the_older_one", "refused"),
    [(None, None, ["spec.tablespaceName"]), ("a-uuid", None, []), ("a-uuid", "a-uuid", ["spec.tablespaceName"])],
)
def test_one_that_can_t_be_read_and_made_nothing_takes_no_name_from_the_maker_of_the_tablespace(
    made: str | None, made_by_the_older_one: str | None, refused: list[str]
) -> None:
    older = with_status(tablespace("flights", {"creationTimestamp": "2026-01-01T00:00:00Z"}), uuid=made_by_the_older_one)
    newer = with_status(tablespace("again", {"creationTimestamp": "2026-01-02T00:00:00Z"}, tablespaceName="flights"), uuid=made)
    unread = (Declared("flights", older, readable=False),)
    assert paths(tablespace_refusals(newer, None, (newer,), unread)) == refused


@pytest.mark.parametrize(("finalizers", "refused"), [(["herdkeeper.io/delete-data"], ["spec.tablespaceName"]), ([], [])])
def test_a_tablespace_that_is_being_dropped_keeps_its_sql_name_until_it_is_gone(finalizers: list[str], refused: list[str]) -> None:
    dropped = {"creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-03T00:00:00Z", "finalizers": finalizers}
    newer = tablespace("again", {"creationTimestamp": "2026-01-02T00:00:00Z"}, tablespaceName="flights")
    assert paths(tablespace_refusals(newer, None, (tablespace("flights", dropped), newer))) == refused


def test_the_same_sql_name_in_another_cluster_is_accepted() -> None:
    here, there = tablespace("flights"), tablespace("other", tablespaceName="flights", herdDBRef={"name": "db2"})
    assert tablespace_refusals(there, None, (here, there)) == ()


def test_a_key_that_a_field_decides_is_refused_with_the_field() -> None:
    (refusal,) = bookkeeper_refusals(bookkeeper(config={"lostBookieRecoveryDelay": "0"}))
    assert refusal.path == "spec.config[lostBookieRecoveryDelay]"
    assert refusal.fix == "set spec.autoRecovery.lostBookieRecoveryDelaySeconds instead"


@pytest.mark.parametrize(
    ("period", "refused"), [("300000", False), ("86400000", False), ("86400001", True), ("5 minutes", True), ("0", True), ("\u00b2", True)]
)
def test_a_checkpoint_period_with_which_no_sql_node_starts_is_refused(period: str, refused: bool) -> None:
    found = herddb_refusals(herddb(config={"server.checkpoint.period": period}), None)
    assert paths(found) == (["spec.config[server.checkpoint.period]"] if refused else [])
    assert all(refusal.fix == "write a whole number from 1 to 86400000, or raise retentionHours" for refusal in found)


def test_a_key_that_bookkeeper_does_not_know_is_named_with_the_one_that_was_meant() -> None:
    assert unknown_keys(("compactionRat", "flushInterval", "zzz"), BOOKKEEPER) == ("compactionRat (did you mean compactionRate?)", "zzz")


def test_every_line_that_is_built_is_one_that_bookkeeper_knows() -> None:
    shared = build_bookies_shared(bookkeeper(), "zk:2181", Founded("an-instance", frozenset(), frozenset()))[0]["data"]
    autorecovery = build_autorecovery(bookkeeper(autoRecovery={"bytesPerSecond": "1Mi"}), "zk:2181", {})[0]["data"]
    keys = {line.partition("=")[0] for files in (shared, autorecovery) for line in files["bk_server.conf"].splitlines()}
    assert unknown_keys(keys, BOOKKEEPER) == ()
    assert set(owned_config.BOOKKEEPER) - {"ledgersRootPath", "include", "includeOptional"} <= BOOKKEEPER


def test_a_static_member_line_is_refused() -> None:
    assert paths(refused_of_zookeeper(zookeeper(config={"server.4": "stranger:2888:3888"}))) == ["spec.config[server.4]"]


@pytest.mark.parametrize(
    ("refusals", "cluster", "keys"),
    [
        (
            refused_of_zookeeper,
            zookeeper,
            (
                "db.autocreate",
                "forceSync",
                "snapshot.trust.empty",
                "skipACL",
                "authProvider.x509",
                "X509AuthenticationProvider.superUser",
                "dataDir",
                "admin.restore.enabled",
            ),
        ),
        (
            bookkeeper_refusals,
            bookkeeper,
            (
                *("journalSyncData", "journalWriteData", "dataIntegrityStampMissingCookies", "allowStorageExpansion"),
                *("skipReplayJournalInvalidRecord", "entryLogPerLedgerEnabled", "useTransactionalCompaction"),
                *("include", "Include", "INCLUDEOPTIONAL"),  # commons-configuration2 takes any case
            ),
        ),
        (
            lambda cluster: herddb_refusals(cluster, None),
            herddb,
            ("requirefsync", "server.clear.at.boot", "bookkeeper.zkServers"),
        ),
    ],
    ids=["zookeeper", "bookkeeper", "herddb"],
)
def test_no_line_of_configuration_can_give_up_what_was_acknowledged(refusals: Any, cluster: Any, keys: tuple[str, ...]) -> None:
    for key in keys:
        assert paths(refusals(cluster(config={key: "x"}))) == [f"spec.config[{key}]"]


@pytest.mark.parametrize(
    ("refusals", "cluster", "keys"),
    [
        (
            refused_of_zookeeper,
            zookeeper,
            (
                *("clientPort", "clientPortAddress", "secureClientPort", "secureClientPortAddress"),
                *("observerMasterPort", "serverCnxnFactory", "client.portUnification", "portUnification", "sslQuorum"),
                *("ssl.clientAuth", "quorumListenOnAllIPs", "server.4"),
                *("admin.enableServer", "admin.serverAddress", "admin.serverPort", "admin.portUnification", "admin.forceHttps"),
                *("metricsProvider.className", "metricsProvider.httpHost", "metricsProvider.httpPort"),
            ),
        ),
        (
            bookkeeper_refusals,
            bookkeeper,
            (
                *("bookiePort", "listeningInterface", "allowEphemeralPorts", "disableServerSocketBind", "enableLocalTransport"),
                *("httpServerClass", "httpServerEnabled", "httpServerHost", "httpServerPort", "httpServerTlsEnable"),
                *("httpServerKeyStorePath", "httpServerKeyStorePassword", "httpServerTrustStorePath", "httpServerTrustStorePassword"),
                *("prometheusStatsHttpEnable", "prometheusStatsHttpPort", "statsProviderClass", "extraServerComponents"),
            ),
        ),
        (
            lambda cluster: herddb_refusals(cluster, None),
            herddb,
            (
                *("server.host", "server.port", "server.advertised.host", "server.advertised.port", "server.ssl", "server.network.enabled"),
                *("http.enable", "http.host", "http.port", "herdkeeper.http.host", "herdkeeper.http.port"),
                *("server.bookkeeper.start", "server.bookkeeper.port"),
            ),
        ),
    ],
    ids=["zookeeper", "bookkeeper", "herddb"],
)
def test_no_line_of_configuration_opens_or_moves_a_port_or_says_how_it_is_encrypted(
    refusals: Any, cluster: Any, keys: tuple[str, ...]
) -> None:
    """All such keys that ZooKeeper 3.9.5, BookKeeper 4.18 and HerdDB 0.29 read."""
    assert set(paths(refusals(cluster(config=dict.fromkeys(keys, "x"))))) == {f"spec.config[{key}]" for key in keys}


@pytest.mark.parametrize(
    "key", ["tlsTrustStore", "clientTrustStore", "clientTrustStoreType", "clientKeyStore", "clientAuthProviderFactoryClass"]
)
def test_no_line_of_configuration_says_whom_a_client_of_bookies_trusts_or_who_it_is(key: str) -> None:
    """BookKeeper's client (4.18) takes `clientTrustStore`, where it is set, instead of `tlsTrustStore`."""
    assert paths(bookkeeper_refusals(bookkeeper(config={key: "x"}))) == [f"spec.config[{key}]"]
    assert paths(herddb_refusals(herddb(config={f"bookkeeper.{key}": "x"}), None)) == [f"spec.config[bookkeeper.{key}]"]


@pytest.mark.parametrize(
    "config", [{"flushInterval": "1\nbookieId=other"}, {"gc wait": "1"}, {"a\nbookieId": "x"}, {"flushInterval": "60000\\"}]
)
def test_neither_a_line_break_nor_a_joined_line_can_change_an_owned_key_in_the_file(config: dict[str, str]) -> None:
    assert len(bookkeeper_refusals(bookkeeper(config=config))) == 1


def test_a_password_in_the_configuration_is_refused_and_told_nowhere() -> None:
    (refusal,) = herddb_refusals(herddb(config={"server.password": "hunter2"}), None)
    assert refusal.sentence == (
        "spec.config[server.password] is set: spec.credentialsSecretRef sets this key; set spec.credentialsSecretRef instead"
    )


@pytest.mark.parametrize("key", ["gc wait", "bookkeeper.a", "server.checkpoint.period"])
def test_no_value_of_the_configuration_is_told_with_its_refusal(key: str) -> None:
    refusals = herddb_refusals(herddb(config={key: "1\nserver.password=hunter2"}), None)
    assert key in refusals[0].path
    assert not [refusal.sentence for refusal in refusals if "hunter2" in refusal.sentence]


@pytest.mark.parametrize("value", ["${file:UTF-8:/token/token}", "1${env:TOKEN}", r"$\{env:TOKEN}", r"\u0024{env:TOKEN}"])
def test_no_value_of_the_configuration_has_a_bookie_read_a_file_or_a_variable(value: str) -> None:
    """Where it is to be a number, BookKeeper's log tells what it found, and the status tells the end of the log."""
    assert paths(bookkeeper_refusals(bookkeeper(config={"zkTimeout": value}))) == ["spec.config['zkTimeout']"]


def test_a_line_of_the_configuration_that_can_not_be_read_is_refused_without_its_value() -> None:
    with pytest.raises(ValidationError) as caught:
        herddb(config={"a": "hunter2" * 200})
    (refusal,) = unreadable_refusals(caught.value)
    assert refusal.path == "spec.config.a"
    assert "hunter2" not in refusal.sentence


@pytest.mark.parametrize("mark", ["?", "#", "/", "%3f"])
def test_no_address_of_an_ensemble_leads_to_a_root_of_another_namespace(mark: str) -> None:
    """Bookies take what stands before `?` and `#` for their cluster's root: they would join the other one, which would write to them."""
    with pytest.raises(ValidationError):
        bookkeeper(zooKeeperRef=None, zooKeeperAddress=f"zk.infra.svc/other/bk/ledgers{mark}:2181")
    assert bookkeeper(zooKeeperRef=None, zooKeeperAddress="zk-0.infra.svc:2181,10.0.0.1:2181").spec.zoo_keeper_ref is None


@pytest.mark.parametrize("command", ["restore", "snapshot"])
def test_nobody_can_replace_or_read_all_data_through_the_admin_port_of_zookeeper(command: str) -> None:
    assert paths(refused_of_zookeeper(zookeeper(config={f"admin.{command}.enabled": "true"}))) == [f"spec.config[admin.{command}.enabled]"]
    config_map = build_zookeeper(Ensemble(zookeeper(), objects()))[0]
    assert f"admin.{command}.enabled=false" in config_map["data"]["zoo.cfg"].splitlines()


OLD_MANIFEST = "id/uuid/manifests/00000000000000000001-00000000000000000002.json"


@pytest.mark.parametrize("path", [OLD_MANIFEST, f"a/b.c/..d/_e/{OLD_MANIFEST}"])
def test_a_manifest_is_named_by_a_path_below_its_place(path: str) -> None:
    assert TypeAdapter(ManifestPath).validate_python(path) == path
    assert TypeAdapter(TablespaceFolder).validate_python(path.partition("/manifests")[0])


@pytest.mark.parametrize("way", ["../", "a/../../", "./", "a/.../", "/"])
def test_no_path_of_a_manifest_or_folder_leads_out_of_its_place(way: str) -> None:
    for kind, path in ((ManifestPath, f"{way}{OLD_MANIFEST}"), (TablespaceFolder, f"{way}id/uuid"), (TablespaceFolder, "id/..")):
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(path)


@pytest.mark.parametrize("year", [0, 1, 1900, 2000, 2023, 2024, 2100, 2400, 9999])
def test_a_moment_is_a_day_of_the_calendar(year: int) -> None:
    days = [f"{year:04}-{month:02}-{day:02}" for month in range(14) for day in range(33)]
    taken = []
    for day in days:
        with contextlib.suppress(ValidationError):
            taken.append(TypeAdapter(Moment).validate_python(f"{day}T12:00:00Z")[:10])
    assert taken == [day for day in days if year >= 1000 and moment_of(f"{day}T12:00:00Z") is not None]


def test_a_key_that_nobody_owns_is_accepted() -> None:
    assert bookkeeper_refusals(bookkeeper(config={"flushInterval": "900000"})) == ()
    assert owned_config.owner_of("flushInterval", owned_config.BOOKKEEPER) is None


def test_a_field_that_an_owned_key_points_to_exists() -> None:
    pointed = [path for keys in (owned_config.BOOKKEEPER, owned_config.HERDDB) for path in keys.values() if path]
    specs = {"spec." + line for cluster in (bookkeeper(), herddb()) for line in dotted(type(cluster.spec))}
    for path in {part for joined in pointed for part in joined.split(" or ")}:
        assert path in specs


def dotted(model: Any) -> list[str]:
    found = []
    for field in model.model_fields.values():
        found.append(field.alias)
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if hasattr(part, "model_fields"):
                found += [f"{field.alias}.{name}" for name in dotted(part)]
    return found


def test_a_resource_that_can_not_be_read_is_refused_field_by_field() -> None:
    with pytest.raises(ValidationError) as caught:
        zookeeper(replicas="many", storage={"size": "20"})
    refusals = unreadable_refusals(caught.value)
    assert paths(refusals) == ["spec.replicas", "spec.storage.size"]
    assert refusals[0].sentence.startswith("spec.replicas is 'many': ")


@pytest.mark.parametrize("endpoint", ["https://me:secret@s3", "https://me@s3:9000/x", "http://@s3"])
def test_the_address_of_a_store_has_no_user_and_no_password(endpoint: str) -> None:
    store = {"uri": "s3://backups", "endpoint": endpoint, "credentialsSecretRef": {"name": "keys"}}
    with pytest.raises(ValidationError) as caught:
        made("Checkpoint", "c", {"tablespaceRef": {"name": "t"}, "destination": {"objectStore": store}})
    (refusal,) = unreadable_refusals(caught.value)
    assert refusal.path == "spec.destination.objectStore.endpoint"
    assert endpoint not in refusal.sentence


def test_an_address_that_can_not_be_read_is_refused_without_its_password() -> None:
    store = {"uri": "s3://me:secret@backups", "endpoint": "https://me:secret@s3/?", "storageAccount": "AccountKey=secret"}
    with pytest.raises(ValidationError) as caught:
        made("Checkpoint", "c", {"tablespaceRef": {"name": "t"}, "destination": {"objectStore": store}})
    refusals = unreadable_refusals(caught.value)
    assert paths(refusals) == [f"spec.destination.objectStore.{field}" for field in store]
    assert not [refusal.sentence for refusal in refusals if "secret" in refusal.sentence]


@pytest.mark.parametrize(("quantity", "expected"), [("1Ki", 1024), ("20Mi", 20 * 1024**2), ("3Gi", 3 * 1024**3), ("2Ti", 2 * 1024**4)])
def test_a_quantity_has_binary_units(quantity: str, expected: int) -> None:
    assert bytes_of(quantity) == expected


@pytest.mark.parametrize("quantity", ["20", "20G", "Gi", "1.5Gi", ""])
def test_another_quantity_is_refused_with_an_example(quantity: str) -> None:
    with pytest.raises(ValueError, match=r"e\.g\. 20Gi"):
        bytes_of(quantity)
