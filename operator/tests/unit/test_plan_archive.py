"""The log's archive: who makes it, for how long the log waits for it, and what is told of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from situations import live, objects, quickstart, with_metadata, with_spec, with_status
from test_plan_log_pin import SEEN, UUID, checkpoint

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.api.job import Destination
from herdkeeper.api.tablespace import ArchiveStatus, LogArchive, TablespaceLog
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.engine.reconcile import finalizer_step
from herdkeeper.herddb.log.plan_archive import archive_steps
from herdkeeper.herddb.log.plan_pins import log_pin_steps
from herdkeeper.herddb.log.seen import ArchiveObserved, LogPin
from herdkeeper.herddb.log.status_archive import archive_fields, log_archived
from herdkeeper.herddb.log.status_readers import log_released
from herdkeeper.herddb.state.cluster import NodeTablespace, RetainedLog
from herdkeeper.herddb.tablespace.deletion import plan_tablespace_deletion
from herdkeeper.planning.actions import Apply, Delete, SetFinalizer, SetLogPin
from herdkeeper.planning.status import described
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress, decode_archive_progress, encode_archive_progress
from herdkeeper.protocol.log_pin import BEGIN
from herdkeeper.shared.dependents import NO_DEPENDENTS
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.build_job import build_checkpoint
from herdkeeper.spark.object_store import StoreSecrets, store_secrets
from herdkeeper.spark.sources import ArchiveSource, CheckpointSource

PATH = f"/demo/db/herd/logPins/{UUID}/archive"
CLAIM: Any = {"persistentVolumeClaim": {"claimName": "archives"}}
FORGETFUL = with_status(quickstart("Tablespace"), uuid=UUID)
ARCHIVED = with_spec(FORGETFUL, log=TablespaceLog(archive=LogArchive(destination=CLAIM, every_seconds=30)))
ARCHIVING = replace(SEEN, tablespace=ARCHIVED)
HELD = ArchivedRange((3, 0), 1_000, True, (5, 9), 61_500, (5, 10))
LATER = replace(HELD, begins_log=False, first=(4, 0))
PROGRESS = ArchiveProgress("archives", HELD, 62_000, 31.4)


def pins(tablespace: Tablespace, progress: Any, pin: LogPin | Unknown | None) -> list[tuple[Any, Any]]:
    """What the pin becomes, and the version that was read."""
    steps = log_pin_steps(replace(SEEN, tablespace=tablespace, archive=ArchiveObserved(progress, pin)), UUID)
    assert all(step.path == PATH for step in steps)
    return [(step.lsn, step.version) for step in steps]


@pytest.mark.parametrize(
    ("situation", "progress", "pin", "becomes"),
    [
        ("the archiver has said nothing yet", None, None, [(BEGIN, None)]),
        ("it begins", None, LogPin(BEGIN, 0), []),
        ("the archive is empty", replace(PROGRESS, held=None), LogPin(BEGIN, 0), []),
        ("something is archived", PROGRESS, LogPin(BEGIN, 0), [((5, 10), 0)]),
        ("more of the same ledger is: ledgers are released whole", PROGRESS, LogPin((5, 2), 4), []),
        ("its ledger has ended", replace(PROGRESS, held=replace(HELD, resume=(7, 0))), LogPin((5, 2), 4), [((7, 0), 4)]),
        ("the pin is ahead: what is left before it is kept", PROGRESS, LogPin((9, 0), 4), [((5, 10), 4)]),
        ("another claim holds it, and the new one nothing", replace(PROGRESS, destination="older"), LogPin((5, 2), 4), [(BEGIN, 4)]),
        ("the same, and nothing was ever pinned", replace(PROGRESS, destination="older"), None, [(BEGIN, None)]),
        ("nobody knows what the pin holds", PROGRESS, LogPin(None, 4), [((5, 10), 4)]),
        ("the pin can't be read", PROGRESS, Unknown("silence"), []),
        ("the progress can't be read", Unknown("silence"), LogPin((3, 0), 4), []),
    ],
)
def test_the_log_is_kept_until_it_is_archived(situation: str, progress: Any, pin: Any, becomes: Any) -> None:
    assert pins(ARCHIVED, progress, pin) == becomes, situation


def test_a_log_that_is_not_archived_is_not_kept_for_it() -> None:
    assert pins(FORGETFUL, PROGRESS, LogPin((5, 2), 4)) == [(None, 4)]
    assert pins(FORGETFUL, PROGRESS, None) == pins(FORGETFUL, PROGRESS, Unknown("silence")) == []
    assert described(SetLogPin("zk-0:2181", PATH, None, 4, "so")) == (
        Reason.LOG_PINNED,
        "No longer keeping the log until it is archived, since so",
    )


def test_all_pins_go_with_the_resource_and_an_archive_never_does() -> None:
    step = finalizer_step(ARCHIVED, NO_DEPENDENTS)
    assert step is not None
    assert step.present
    seen = replace(SEEN, log_pin=LogPin((5, 3), 8), archive=ArchiveObserved(PROGRESS, LogPin((5, 2), 4)))
    first = plan_tablespace_deletion(replace(seen, tablespace=ARCHIVED), 0.0)
    assert [(type(action), getattr(action, "lsn", "")) for action in first.actions] == [(SetLogPin, None)] * 3
    (last,) = plan_tablespace_deletion(replace(ARCHIVING, disk_pin=None), 0.0).actions
    assert isinstance(last, SetFinalizer)
    unread = plan_tablespace_deletion(replace(ARCHIVING, archive=ArchiveObserved(pin=Unknown("silence"))), 0.0)
    assert (unread.actions, unread.wait is not None) == ((), True)


def test_nothing_is_archived_of_a_database_that_is_refused_or_was_not_looked_at() -> None:
    """The ledgers that it lists may be those of others, as by another BookKeeperCluster of their ids."""
    said = SEEN.herddb.status.conditions[0].model_copy(update={"status": "False", "reason": "InvalidSpec"})
    for database in (with_status(SEEN.herddb, conditions=(said,)), quickstart("HerdDBCluster")):
        assert archive_steps(replace(ARCHIVING, herddb=database), "spark:1").actions == ()


def test_no_archiver_is_made_before_a_sql_node_is_ready_and_one_that_is_there_stays_as_declared() -> None:
    """Whether the listed ledgers are the database's own is found out before its first node is made."""
    before = replace(SEEN, nodes={})
    assert archive_steps(replace(before, tablespace=ARCHIVED), "spark:1").actions == ()
    (made,) = archive_steps(ARCHIVING, "spark:1").actions
    assert isinstance(made, Apply)
    (changed,) = archive_steps(replace(before, tablespace=ARCHIVED, objects=objects(live((made.manifest,)))), "spark:2").actions
    assert isinstance(changed, Apply)


def test_the_archiver_is_there_while_the_spec_asks_for_it() -> None:
    made = archive_steps(ARCHIVING, "spark:1")
    (apply,) = made.actions
    assert isinstance(apply, Apply)
    assert (apply.new, made.requeue_after_seconds) == (True, 30)
    container = apply.manifest["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "spark:1"
    assert container["args"][-2:] == ["--every", "30"]
    live = {**apply.manifest, "metadata": {**apply.manifest["metadata"], "uid": "a-deployment"}}
    there = replace(SEEN, objects=Objects({("Deployment", "flights-archive"): live}))
    assert archive_steps(replace(there, tablespace=ARCHIVED), "spark:1").actions == ()
    assert archive_steps(replace(ARCHIVING, taken=("Deployment flights-archive",)), "spark:1").actions == ()
    (gone,) = archive_steps(there, "spark:1").actions
    assert gone == Delete("apps/v1", "Deployment", "flights-archive", "a-deployment", Reason.REMOVED)
    assert archive_steps(SEEN, "spark:1").actions == ()


@pytest.mark.parametrize(
    ("situation", "observed", "status", "reason", "words"),
    [
        ("it keeps up", ArchiveObserved(PROGRESS, now=100), "True", Reason.ARCHIVED, "archived at the volume claim archives, every 30 s"),
        ("the log is empty", ArchiveObserved(replace(PROGRESS, held=None), now=100), "True", Reason.ARCHIVED, "has no confirmed entry"),
        ("it is late", ArchiveObserved(PROGRESS, trouble="no pod", now=213), "False", Reason.ARCHIVE_LAGS, "1970-01-01T00:01:02.000Z is"),
        ("it can't go on", ArchiveObserved(replace(PROGRESS, trouble="full"), now=63), "False", Reason.ARCHIVE_STANDS, "since: full"),
        ("a key is gone", ArchiveObserved(replace(PROGRESS, locked="why"), now=63), "False", Reason.WAITING_FOR_SECRET, "be read: why"),
        ("it has a long way to go", ArchiveObserved(replace(PROGRESS, current_at_millis=None)), "False", Reason.ARCHIVE_STARTING, "being"),
        ("its pod does not run", ArchiveObserved(trouble="no pod"), "False", Reason.ARCHIVE_STARTING, "archives; its pod: no pod"),
        ("it went to another claim", ArchiveObserved(replace(PROGRESS, destination="o")), "False", Reason.ARCHIVE_STARTING, "nothing is"),
        ("ZooKeeper is silent", ArchiveObserved(Unknown("silence")), "Unknown", Reason.UNREADABLE, "silence"),
    ],
)
def test_it_is_told_whether_the_archive_keeps_up(
    situation: str, observed: ArchiveObserved, status: str, reason: Reason, words: str
) -> None:
    (condition,) = log_archived(replace(ARCHIVING, archive=observed)).values()
    assert (condition.status, condition.reason, words in condition.message) == (status, reason, True), (situation, condition)


def fields(progress: Any, *checkpoints: Checkpoint, tablespace: Tablespace = ARCHIVED) -> dict[str, Any]:
    return archive_fields(replace(SEEN, tablespace=tablespace, checkpoints=checkpoints, archive=ArchiveObserved(progress)), UUID)


def test_the_status_has_what_is_archived_and_how_old_it_may_be() -> None:
    assert fields(PROGRESS)["archive"] == {
        "claimName": "archives",
        "firstLsn": {"ledgerId": 3, "entryId": 0},
        "lsn": {"ledgerId": 5, "entryId": 9},
        "lsnTimestamp": "1970-01-01T00:01:01.500Z",
        "currentAt": "1970-01-01T00:01:02.000Z",
        "lagSeconds": 31,
    }
    assert fields(None) == fields(replace(PROGRESS, destination="older")) == {"archive": {"claimName": "archives"}}
    assert fields(PROGRESS, tablespace=FORGETFUL) == {}
    before = with_status(ARCHIVED, archive=ArchiveStatus(claim_name="archives", lag_seconds=3))
    assert fields(Unknown("silence"), tablespace=before) == {"archive": {"claimName": "archives", "lagSeconds": 3}}


def at(ledger: int, entry: int, stamp: str = "1970-01-01T00:00:30Z", **more: Any) -> Checkpoint:
    return checkpoint(f"c{ledger}-{entry}", (ledger, entry), **{"lsn_timestamp": stamp, "latest_timestamp": stamp, **more})


END = {"to": "1970-01-01T00:01:01.500Z", "toLsn": {"ledgerId": 5, "entryId": 9}}


@pytest.mark.parametrize(
    ("situation", "held", "checkpoints", "since"),
    [
        ("the archive has the whole log", HELD, (), {"from": "1970-01-01T00:00:01.000Z", "fromLsn": {"ledgerId": 3, "entryId": 0}}),
        ("it began later, and there is nothing to go on from", LATER, (), None),
        ("one goes on", LATER, (at(4, 3),), {"from": "1970-01-01T00:00:30Z", "fromLsn": {"ledgerId": 4, "entryId": 3}}),
        ("the oldest counts", LATER, (at(5, 1, "x"), at(4, 3)), {"from": "1970-01-01T00:00:30Z", "fromLsn": {"ledgerId": 4, "entryId": 3}}),
        ("a transaction that is open there began before", LATER, (at(4, 3, restart_lsn=Lsn(ledger_id=3, entry_id=9)),), None),
        ("it lies behind what is archived", LATER, (at(6, 0),), None),
        ("one is being deleted", LATER, (with_metadata(at(4, 3), deletion_timestamp="2026-01-01T00:00:00Z"),), None),
        ("nothing is archived", None, (at(4, 3),), None),
    ],
)
def test_the_window_is_what_can_be_had_from_the_archive(situation: str, held: Any, checkpoints: Any, since: Any) -> None:
    found = fields(replace(PROGRESS, held=held), *checkpoints).get("recoveryWindow")
    assert found == (None if since is None else {**since, **END}), situation


def test_the_window_begins_with_the_first_time_for_which_there_is_a_base() -> None:
    earlier, later = at(4, 3, latest_timestamp=None), at(5, 1, "1970-01-01T00:00:40Z")
    found = [fields(replace(PROGRESS, held=LATER), *made)["recoveryWindow"] for made in ((later, earlier), (earlier,))]
    assert [window.get("from") for window in found] == ["1970-01-01T00:00:40Z", None], "one of an earlier version is the base of no time"
    assert [window["fromLsn"] for window in found] == [{"ledgerId": 4, "entryId": 3}] * 2


def test_a_log_that_is_held_back_for_the_archive_says_so() -> None:
    leader = NodeTablespace("flights", UUID, "leader", True, (9, 7), None, retained_log=RetainedLog(7, 1_795_000_000_000, ("archive",)))
    (condition,) = log_released(leader).values()
    assert condition.message.endswith("see the condition LogArchived")


@pytest.mark.parametrize("progress", [PROGRESS, ArchiveProgress("c", None, None, None, "why", "a gap", "no key")])
def test_progress_is_read_as_it_was_written(progress: ArchiveProgress) -> None:
    assert decode_archive_progress(encode_archive_progress(progress)) == progress


def test_an_archive_is_no_more_current_than_its_report_is_old_whatever_the_archivers_clock_said() -> None:
    ahead = encode_archive_progress(replace(PROGRESS, current_at_millis=9_000_000))
    for written_at, current_at in ((100.0, 100_000), (9_500.0, 9_000_000), (None, 9_000_000)):
        assert decode_archive_progress(ahead, written_at).current_at_millis == current_at
    seen = replace(SEEN, archive=ArchiveObserved(decode_archive_progress(ahead, 100.0), now=3_600.0))
    (condition,) = log_archived(replace(seen, tablespace=ARCHIVED)).values()
    assert (condition.status, condition.reason) == ("False", Reason.ARCHIVE_LAGS)


@pytest.mark.parametrize("data", [b"", b"?", b"[]", b"{}", encode_archive_progress(PROGRESS).replace(b"[3,0]", b'["3",0]')])
def test_progress_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedDataError, match="progress of an archive"):
        decode_archive_progress(data)


@pytest.mark.parametrize(
    ("claim", "mounted"),
    [("archives", {"/checkpoints": None, "/archive": True}), ("out", {"/checkpoints": None})],
    ids=["at another claim", "at the same claim"],
)
def test_a_checkpoint_reads_the_archive_of_its_tablespace(claim: str, mounted: dict[str, bool | None]) -> None:
    place = Destination.model_validate({"persistentVolumeClaim": {"claimName": claim}})
    source = CheckpointSource("z:2181", "/l", "/h", "flights", None, "follower:9845", "s", ArchiveSource("flights", place))
    asks = Checkpoint(
        metadata={"name": "c", "namespace": "demo"},
        spec={
            "tablespaceRef": {"name": "flights"},
            "destination": {"persistentVolumeClaim": {"claimName": "out"}},
            "job": {"executors": {"instances": 2}},
        },
    )
    pod = build_checkpoint(asks, source, "spark:1")[-1]["spec"]["template"]["spec"]
    mounts = pod["containers"][0]["volumeMounts"]
    assert {mount["mountPath"]: mount.get("readOnly") for mount in mounts if mount["mountPath"] != "/tmp"} == mounted
    assert ("--archive" in pod["containers"][0]["args"]) is (claim == "archives")
    assert ("out:/checkpoints,archives:/archive" in pod["containers"][0]["args"]) is (claim == "archives")
    term = pod["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert term["labelSelector"]["matchLabels"]["app.kubernetes.io/name"] == "archive"


STORE: dict[str, Any] = {
    "uri": "s3://archives/flights",
    "endpoint": "https://store:9000",
    "region": "eu-central-1",
    "credentialsSecretRef": {"name": "archive-keys"},
    "caSecretRef": {"name": "archive-ca"},
}
PLACE = "s3://archives/flights at https://store:9000"
FIELD = "spec.log.archive.destination.objectStore"
KEYS = {"AWS_ACCESS_KEY_ID": "an id", "AWS_SECRET_ACCESS_KEY": "a secret"}
SECRETS = {"archive-keys": KEYS, "archive-ca": {"ca.crt": "certificates"}}
UIDS = {"archive-keys": "uid-of-keys", "archive-ca": "uid-of-certificates"}
IN_STORE = with_spec(FORGETFUL, log=TablespaceLog.model_validate({"archive": {"destination": {"objectStore": STORE}, "everySeconds": 30}}))
THERE = replace(PROGRESS, destination=PLACE)


def opened(secrets: dict[str, dict[str, str] | None]) -> StoreSecrets | Problem:
    return store_secrets(IN_STORE.spec.log.archive.destination.object_store, secrets, UIDS, FIELD)


def archiver(secrets: dict[str, dict[str, str] | None]) -> Any:
    """The archiver's Deployment; None while none is made."""
    made = archive_steps(replace(SEEN, tablespace=IN_STORE, archive=ArchiveObserved(store=opened(secrets))), "spark:1")
    assert made.requeue_after_seconds == 30
    return next((action.manifest for action in made.actions if isinstance(action, Apply)), None)


def test_an_archiver_of_an_object_store_gets_its_keys_and_certificates_and_mounts_nothing_of_the_archive() -> None:
    template = archiver(SECRETS)["spec"]["template"]
    (container,) = template["spec"]["containers"]
    given = container["args"]
    assert [given[given.index(option) + 1] for option in ("--destination", "--place")] == ["s3://archives/flights", PLACE]
    variables = {entry["name"]: entry.get("value") or entry["valueFrom"]["secretKeyRef"]["name"] for entry in container["env"]}
    assert variables == {
        "DESTINATION_AWS_ACCESS_KEY_ID": "archive-keys",
        "DESTINATION_AWS_SECRET_ACCESS_KEY": "archive-keys",
        "DESTINATION_AWS_ENDPOINT_URL": "https://store:9000",
        "DESTINATION_AWS_REGION": "eu-central-1",
        "DESTINATION_OBJECT_STORE_AUTHORITIES": "archive-ca",
    }
    assert [volume["name"] for volume in template["spec"]["volumes"]] == ["tmp"]
    assert "a secret" not in str(template)


def test_an_archiver_is_started_anew_when_what_its_store_is_opened_with_changes_and_not_for_anything_else() -> None:
    def marks(secrets: dict[str, dict[str, str] | None]) -> Any:
        return archiver(secrets)["spec"]["template"]["metadata"]["annotations"]

    assert marks(SECRETS) == marks({**SECRETS, "archive-ca": {"ca.crt": "certificates", "tls.key": "x"}, "other": None})
    assert marks(SECRETS) != marks({**SECRETS, "archive-keys": {**KEYS, "AWS_SECRET_ACCESS_KEY": "another"}})
    on_volume = archive_steps(ARCHIVING, "spark:1").actions[0]
    assert isinstance(on_volume, Apply)
    assert "annotations" not in on_volume.manifest["spec"]["template"]["metadata"]


def test_nobody_can_try_passwords_on_the_mark_that_what_a_store_is_opened_with_leaves_on_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark depends on what only the Secret itself tells."""
    first = archiver(SECRETS)["spec"]["template"]["metadata"]["annotations"]
    monkeypatch.setitem(UIDS, "archive-keys", "uid-of-a-secret-made-anew")
    assert archiver(SECRETS)["spec"]["template"]["metadata"]["annotations"] != first


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ({}, "credentialsSecretRef.name is archive-keys: the Secret does not exist; create it with AWS_ACCESS_KEY_ID and AWS_SECRET"),
        (
            {"archive-keys": {"AWS_ACCESS_KEY_ID": "x"}},
            "credentialsSecretRef.name is archive-keys: that Secret lacks AWS_SECRET_ACCESS_KEY",
        ),
        ({"archive-keys": KEYS}, "caSecretRef.name is archive-ca: the Secret does not exist; create it with ca.crt"),
    ],
    ids=["no Secret", "no key", "no certificates"],
)
def test_no_archiver_is_made_before_its_store_can_be_opened_and_the_condition_names_the_field(secrets: Any, words: str) -> None:
    assert archiver(secrets) is None
    store = opened(secrets)
    for progress in (None, PROGRESS, replace(THERE, trouble="refused"), replace(THERE, current_at_millis=None)):
        observed = ArchiveObserved(progress, trouble="no pod", now=63, store=store)
        (condition,) = log_archived(replace(SEEN, tablespace=IN_STORE, archive=observed)).values()
        assert (condition.status, condition.reason) == ("False", Reason.WAITING_FOR_SECRET)
        assert f"{FIELD}.{words}" in condition.message


def test_an_archiver_that_has_its_keys_already_goes_on_without_their_secret_until_it_lags() -> None:
    def condition(now: float) -> tuple[str, str, str]:
        observed = ArchiveObserved(THERE, now=now, store=opened({}))
        (found,) = log_archived(replace(SEEN, tablespace=IN_STORE, archive=observed)).values()
        return found.status, found.reason, found.message

    status, reason, message = condition(100)
    assert (status, reason) == ("True", Reason.ARCHIVED)
    assert f"archived at the object store {PLACE}, every 30 s; another pod could not open it: {FIELD}.credentials" in message
    assert condition(213)[:2] == ("False", Reason.WAITING_FOR_SECRET)
    running = {("Deployment", "flights-archive"): {"metadata": {"name": "flights-archive", "uid": "u", "annotations": {}}}}
    there = replace(SEEN, objects=Objects(running), archive=ArchiveObserved(store=opened({})))
    assert archive_steps(replace(there, tablespace=IN_STORE), "spark:1").actions == ()


def test_what_a_store_or_its_archiver_refuses_is_told_as_the_archiver_says_it() -> None:
    refused = replace(
        THERE, trouble=f"{FIELD.removesuffix('.objectStore')} (--destination) is 's3://archives/flights': the object store has no"
    )
    (condition,) = log_archived(
        replace(SEEN, tablespace=IN_STORE, archive=ArchiveObserved(refused, now=63, store=opened(SECRETS)))
    ).values()
    assert (condition.status, condition.reason) == ("False", Reason.ARCHIVE_STANDS)
    assert condition.message.endswith(refused.trouble)


def test_the_log_is_kept_until_it_is_archived_at_the_very_store_that_is_declared() -> None:
    assert pins(IN_STORE, THERE, LogPin(BEGIN, 0)) == [((5, 10), 0)]
    for elsewhere in (PROGRESS, replace(THERE, destination="s3://archives/flights"), replace(THERE, destination="s3://archives/other")):
        assert pins(IN_STORE, elsewhere, LogPin(BEGIN, 0)) == []
    told = fields(THERE, tablespace=IN_STORE)["archive"]
    assert (told["objectStore"], told["lsn"], "claimName" in told) == (STORE, {"ledgerId": 5, "entryId": 9}, False)
    assert fields(PROGRESS, tablespace=IN_STORE) == {"archive": {"objectStore": STORE}}


def test_an_archive_that_is_opened_without_a_secret_is_told_with_its_account_and_its_archiver_runs_as_that() -> None:
    azure = {"uri": "az://archives/logs", "storageAccount": "account", "serviceAccountName": "archives"}
    declared = with_spec(FORGETFUL, log=TablespaceLog.model_validate({"archive": {"destination": {"objectStore": azure}}}))
    store = store_secrets(declared.spec.log.archive.destination.object_store, {}, UIDS, FIELD)
    made = archive_steps(replace(SEEN, tablespace=declared, archive=ArchiveObserved(store=store)), "spark:1")
    (template,) = (action.manifest["spec"]["template"] for action in made.actions if isinstance(action, Apply))
    assert (template["spec"]["serviceAccountName"], template["spec"]["automountServiceAccountToken"]) == ("archives", False)
    assert template["metadata"]["labels"]["azure.workload.identity/use"] == "true"
    assert template["spec"]["containers"][0]["env"] == [{"name": "DESTINATION_AZURE_STORAGE_ACCOUNT_NAME", "value": "account"}]
    told = fields(replace(PROGRESS, destination="az://archives/logs at account"), tablespace=declared)["archive"]
    assert (told["objectStore"], told["lsn"], "claimName" in told) == (azure, {"ledgerId": 5, "entryId": 9}, False)


OTHER_STORE: dict[str, Any] = {"uri": "s3://backups", "endpoint": "http://other:9000", "credentialsSecretRef": {"name": "backup-keys"}}


def driver(destination: dict[str, Any], archive: dict[str, Any]) -> tuple[list[str], dict[str, str], Any]:
    """Of a Checkpoint with executors: the driver's arguments, and its variables by what they are taken from; the pod of an executor."""
    source = ArchiveSource("flights", Destination.model_validate(archive))
    asks = Checkpoint(
        metadata={"name": "c", "namespace": "demo"},
        spec={"tablespaceRef": {"name": "flights"}, "destination": destination, "job": {"executors": {"instances": 2}}},
    )
    made = build_checkpoint(asks, CheckpointSource("z:2181", "/l", "/h", "flights", None, "follower:9845", "s", source), "spark:1")
    pod = made[-1]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    executor = json.loads(container["args"][container["args"].index("--executor-pod") + 1])
    return container["args"], opens(container), (executor["spec"]["containers"][0], pod)


def opens(container: Any) -> dict[str, str]:
    """The variables with which stores are opened."""
    named = [entry for entry in container.get("env") or [] if "AWS" in entry["name"] or "OBJECT_STORE" in entry["name"]]
    return {entry["name"]: entry.get("value") or entry["valueFrom"]["secretKeyRef"]["name"] for entry in named}


OF_THE_ARCHIVE = {
    "ARCHIVE_AWS_ACCESS_KEY_ID": "archive-keys",
    "ARCHIVE_AWS_SECRET_ACCESS_KEY": "archive-keys",
    "ARCHIVE_AWS_ENDPOINT_URL": "https://store:9000",
    "ARCHIVE_AWS_REGION": "eu-central-1",
    "ARCHIVE_OBJECT_STORE_AUTHORITIES": "archive-ca",
}
OF_THE_OTHER = {
    "DESTINATION_AWS_ACCESS_KEY_ID": "backup-keys",
    "DESTINATION_AWS_SECRET_ACCESS_KEY": "backup-keys",
    "DESTINATION_AWS_ENDPOINT_URL": "http://other:9000",
}


@pytest.mark.parametrize(
    ("destination", "variables"),
    [({"objectStore": OTHER_STORE}, OF_THE_OTHER | OF_THE_ARCHIVE), (CLAIM, OF_THE_ARCHIVE)],
    ids=["at another store", "on a volume"],
)
def test_a_checkpoint_reads_the_archive_in_a_store_with_the_archive_s_own_keys(destination: Any, variables: dict[str, str]) -> None:
    arguments, given, (executor, pod) = driver(destination, {"objectStore": STORE})
    assert arguments[arguments.index("--archive") + 1] == "s3://archives/flights"
    assert given == opens(executor) == variables
    assert "affinity" not in pod


def test_a_checkpoint_at_the_store_of_the_archive_opens_it_once_unless_it_has_other_keys() -> None:
    arguments, given, _ = driver({"objectStore": STORE}, {"objectStore": STORE})
    assert ("--archive" in arguments, [name for name in given if name.startswith("ARCHIVE_")]) == (False, [])
    arguments, given, _ = driver({"objectStore": {**STORE, "credentialsSecretRef": {"name": "own-keys"}}}, {"objectStore": STORE})
    assert arguments[arguments.index("--archive") + 1] == "s3://archives/flights"
    assert (given["DESTINATION_AWS_ACCESS_KEY_ID"], given["ARCHIVE_AWS_ACCESS_KEY_ID"]) == ("own-keys", "archive-keys")


def test_a_checkpoint_in_a_store_mounts_the_archive_that_is_on_a_volume() -> None:
    arguments, given, (executor, pod) = driver({"objectStore": OTHER_STORE}, CLAIM)
    assert given == opens(executor) == OF_THE_OTHER
    assert [arguments[arguments.index(option) + 1] for option in ("--archive", "--executor-volume")] == ["/archive", "archives:/archive"]
    assert "podAffinity" in pod["affinity"]
