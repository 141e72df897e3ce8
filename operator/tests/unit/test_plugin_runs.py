"""`checkpoint`, `audit` and `restore`: what is made, where its files go, and when that has ended well."""

from __future__ import annotations

import datetime
import re

import pytest
from played_cluster import PlayedCluster, called, condition, resource, stack

from herdkeeper.plugin.cluster import ClusterError
from herdkeeper.plugin.command import FINE, WRONG, BadInputError
from herdkeeper.plugin.runs import run_name

PLACE = {"persistentVolumeClaim": {"claimName": "checkpoints"}}
STORE = {"objectStore": {"uri": "s3://bucket/flights", "credentialsSecretRef": {"name": "keys"}}}
ENCRYPTION = {"keysSecretRef": {"name": "keys"}, "currentKey": "2027"}
OLD = {"keysSecretRef": {"name": "former-keys"}}
NOW = datetime.datetime(2026, 11, 21, 14, 30, 5, tzinfo=datetime.UTC)


def checkpoint(name: str, created: str, **spec: object) -> dict:
    item = resource("Checkpoint", name, {"tablespaceRef": {"name": "flights"}, "destination": PLACE, **spec}, phase="Succeeded")
    item["metadata"]["creationTimestamp"] = created
    return item


def schedule(**spec: object) -> dict:
    template = {"tablespaceRef": {"name": "flights"}, "destination": STORE, **spec}
    return resource("ScheduledCheckpoint", "nightly", {"schedule": "0 3 * * *", "template": template})


def created(cluster: PlayedCluster) -> list[tuple[str, str, dict]]:
    return [(kind, name, body["spec"]) for verb, kind, name, body, dry_run in cluster.writes if verb == "create" and not dry_run]


def test_a_run_is_named_after_its_subject_and_the_second_and_its_name_is_never_too_long() -> None:
    assert run_name("flights", NOW) == "flights-20261121-143005"
    assert run_name("a" * 23 + "-" + "b" * 16, NOW) == "a" * 23 + "-20261121-143005"
    assert len(run_name("x" * 40, NOW)) == 40


def test_a_checkpoint_goes_to_the_claim_that_is_named() -> None:
    cluster = PlayedCluster(stack())
    answer, _ = called(cluster, "checkpoint", "flights", "--claim", "volume", "--verify", "Reread", "--name", "mine")
    expected = {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "volume"}}, "verify": "Reread"}
    assert created(cluster) == [("Checkpoint", "mine", expected)]
    assert answer.text == "Checkpoint/mine: a checkpoint of flights was requested, on the volume volume"


@pytest.mark.parametrize(
    "command", [["checkpoint", "flights"], ["restore", "flights", "--at", "2026-01-21T14:30:00+01:00", "--as", "before"]]
)
def test_a_checkpoint_on_a_claim_that_is_named_is_encrypted_if_the_schedule_encrypts(command: list[str]) -> None:
    cluster = PlayedCluster([*stack(), schedule(destination={**STORE, "encryption": ENCRYPTION})])
    called(cluster, *command, "--claim", "mine")
    assert created(cluster)[0][2]["destination"] == {"persistentVolumeClaim": {"claimName": "mine"}, "encryption": ENCRYPTION}


def test_else_it_is_made_as_the_schedule_does_and_else_as_the_newest_one_was() -> None:
    old = checkpoint("old", "2026-01-01T00:00:00Z", target={"timestamp": "2026-01-01T00:00:00Z"}, fullEvery="7d")
    older = checkpoint("older", "2025-01-01T00:00:00Z")
    scheduled = PlayedCluster([*stack(), schedule(deletionPolicy="Delete"), older, old])
    called(scheduled, "checkpoint", "flights")
    ((_, name, spec),) = created(scheduled)
    assert (spec["destination"], spec["deletionPolicy"]) == (STORE, "Delete")
    assert re.fullmatch(r"flights-\d{8}-\d{6}", name)
    alone = PlayedCluster([*stack(), older, old])
    called(alone, "checkpoint", "flights")
    ((_, _, spec),) = created(alone)
    assert spec == {"tablespaceRef": {"name": "flights"}, "destination": PLACE, "fullEvery": "7d"}


def test_a_checkpoint_of_a_moment_has_it_as_the_api_takes_it() -> None:
    cluster = PlayedCluster(stack())
    called(cluster, "checkpoint", "flights", "--claim", "volume", "--at", "2026-01-21T14:30:00.5+01:00")
    ((_, _, spec),) = created(cluster)
    assert spec["target"] == {"timestamp": "2026-01-21T14:30:00.500+01:00"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("checkpoint", "flights"),
            "TABLESPACE flights: it has no Checkpoint or ScheduledCheckpoint with a destination; name an existing PersistentVolumeClaim",
        ),
        (("checkpoint", "flights", "--claim", "v", "--at", "yesterday"), "--at yesterday: give a time with an offset, e.g. 20"),
        (("checkpoint", "flights", "--claim", "v", "--at", "2026-01-21T14:30:00"), "--at 2026-01-21T14:30:00: give a time with an offset"),
        (
            ("checkpoint", "flights", "--claim", "v", "--at", "2999-01-21T14:30:00Z"),
            "--at 2999-01-21T14:30:00Z: that is in the future; it is now",
        ),
        (("checkpoint", "flightz", "--claim", "v"), "TABLESPACE flightz: no Tablespace of that name exists"),
        (("audit", "bkk"), "BOOKKEEPER bkk: no BookKeeperCluster of that name exists in the namespace demo; there is bk"),
        (("restore", "flights", "--as", "before"), "name the moment with one of --at TIME and --from-checkpoint CHECKPOINT"),
        (("restore", "flights", "--as", "flights", "--at", "2026-01-21T14:30:00Z"), "--as flights: a Tablespace of that name exists"),
        (("restore", "flights", "--as", "x", "--from-checkpoint", "y"), "--from-checkpoint y: no Checkpoint of that name exists"),
    ],
)
def test_bad_input_is_named_with_its_value_and_the_fix(words: tuple[str, ...], message: str) -> None:
    cluster = PlayedCluster(stack())
    with pytest.raises(BadInputError) as refused:
        called(cluster, *words)
    assert message in str(refused.value)
    assert cluster.writes == []


def ending(cluster: PlayedCluster, kind: str, **status: object):
    """The run ends the first time that the command waits."""

    def pause(_: float) -> None:
        next(item for item in cluster.documents if item["kind"] == kind and "status" not in item)["status"] = status

    return pause


@pytest.mark.parametrize(
    ("status", "exit_code", "said"),
    [
        ({"phase": "Succeeded", "message": "verified"}, FINE, "verified"),
        ({"phase": "Failed", "message": "no room"}, WRONG, "no room"),
        ({"conditions": [condition("Ready", "False", "InvalidSpec", "spec.verify is")]}, WRONG, "InvalidSpec: spec.verify is"),
    ],
)
def test_with_wait_a_checkpoint_ends_well_only_when_it_succeeded(status: dict, exit_code: int, said: str) -> None:
    cluster = PlayedCluster(stack())
    answer, _ = called(cluster, "checkpoint", "flights", "--claim", "v", "--wait", pause=ending(cluster, "Checkpoint", **status))
    assert answer.exit_code == exit_code
    assert said in answer.text


def running(cluster: PlayedCluster):
    """The run tells of two steps, the first of them twice, and ends."""
    steps = iter(["reads the log", "reads the log", "compares"])

    def pause(_: float) -> None:
        said = next(steps, None)
        run = next(item for item in cluster.documents if item["kind"] == "Checkpoint")
        run["status"] = {"phase": "Running", "message": said} if said else {"phase": "Succeeded", "message": "verified"}

    return pause


def test_with_wait_a_person_sees_what_was_asked_for_and_each_step() -> None:
    cluster = PlayedCluster(stack())
    answer, written = called(cluster, "checkpoint", "flights", "--claim", "v", "--name", "one", "--wait", pause=running(cluster))
    assert written[0].startswith("Checkpoint/one: a checkpoint of flights was requested")
    assert written[1:] == ["Checkpoint/one: reads the log", "Checkpoint/one: compares"]
    assert answer.text == "Checkpoint/one: verified"


def test_with_wait_a_program_gets_one_document_and_nothing_else() -> None:
    cluster = PlayedCluster(stack())
    words = ("checkpoint", "flights", "--claim", "v", "--name", "one", "--wait", "--output", "json")
    answer, written = called(cluster, *words, pause=running(cluster))
    assert written == []
    assert answer.document["outcome"] == "verified"


def test_an_audit_takes_over_how_it_runs_and_neither_its_window_nor_its_repair() -> None:
    kept = {"bookKeeperRef": {"name": "bk"}, "destination": PLACE, "job": {"deadlineSeconds": 60}}
    template = {**kept, "window": {"from": "01:00", "to": "02:00"}, "repair": "Repair", "ledgers": [7]}
    cluster = PlayedCluster([*stack(), resource("ScheduledReplicationAudit", "weekly", {"template": template})])
    called(cluster, "audit", "bk", "--depth", "Light")
    ((_, _, spec),) = created(cluster)
    assert spec == {**kept, "depth": "Light", "repair": "Report"}


@pytest.mark.parametrize(("findings", "exit_code"), [(0, FINE), (3, WRONG)])
def test_an_audit_with_findings_did_not_end_well(findings: int, exit_code: int) -> None:
    cluster = PlayedCluster(stack())
    pause = ending(cluster, "ReplicationAudit", phase="Succeeded", message="read all", findingsTotal=findings)
    assert called(cluster, "audit", "bk", "--wait", pause=pause)[0].exit_code == exit_code


def test_a_restore_makes_a_checkpoint_of_the_moment_and_a_tablespace_from_it() -> None:
    cluster = PlayedCluster([*stack(), schedule()])
    answer, _ = called(cluster, "restore", "flights", "--at", "2026-01-21T14:30:00+01:00", "--as", "before")
    (first, name, checkpoint_spec), (second, new, tablespace_spec) = created(cluster)
    assert (first, second, new) == ("Checkpoint", "Tablespace", "before")
    assert name.startswith("before-")
    assert checkpoint_spec["target"] == {"timestamp": "2026-01-21T14:30:00.000+01:00"}
    assert checkpoint_spec["destination"] == STORE
    assert tablespace_spec == {"herdDBRef": {"name": "db"}, "replicas": 2, "bootstrap": {"checkpoint": {"name": name}}}
    assert len(answer.text.splitlines()) == 2


def made(name: str, latest: str, of: str = "u", **spec: object) -> dict:
    item = checkpoint(name, latest, **spec)
    item["status"] |= {"verified": "files re-read", "latestTimestamp": latest, "manifest": f"i/{of}/manifests/{name}.json"}
    return item


def stack_of_log() -> list[dict]:
    found = stack()
    next(item for item in found if (item["kind"], item["metadata"]["name"]) == ("Tablespace", "flights"))["status"]["uuid"] = "u"
    return found


def test_the_checkpoint_of_a_moment_is_made_where_the_one_before_it_lies() -> None:
    """A schedule that writes elsewhere since has no base there."""
    found = [*stack_of_log(), schedule()]
    before = made("before", "2026-01-20T03:00:00.000Z")
    later, other_log = (
        made("later", "2026-01-21T13:30:00.001Z", destination=STORE),
        made("x", "2026-01-21T03:00:00Z", of="v", destination=STORE),
    )
    for checkpoints, destination in (([before, later, other_log], PLACE), ([later, other_log], STORE)):
        for command in (["restore", "flights", "--as", "before"], ["checkpoint", "flights"]):
            cluster = PlayedCluster([*found, *checkpoints])
            called(cluster, *command, "--at", "2026-01-21T14:30:00+01:00")
            assert created(cluster)[0][2]["destination"] == destination
    cluster = PlayedCluster([*found, before])
    called(cluster, "restore", "flights", "--at", "2026-01-21T14:30:00+01:00", "--as", "before", "--claim", "mine")
    assert created(cluster)[0][2]["destination"] == {"persistentVolumeClaim": {"claimName": "mine"}}


@pytest.mark.parametrize(
    ("old", "now", "expected"),
    [
        (PLACE, {**PLACE, "encryption": ENCRYPTION}, {**PLACE, "encryption": ENCRYPTION}),
        (PLACE, {**STORE, "encryption": ENCRYPTION}, {**PLACE, "encryption": ENCRYPTION}),
        ({**PLACE, "encryption": OLD}, {**STORE, "encryption": ENCRYPTION}, {**PLACE, "encryption": OLD}),
        ({**PLACE, "encryption": OLD}, {**PLACE, "encryption": ENCRYPTION}, {**PLACE, "encryption": ENCRYPTION}),
        ({"objectStore": {**STORE["objectStore"], "credentialsSecretRef": {"name": "revoked"}}}, STORE, STORE),
    ],
)
def test_the_checkpoint_of_a_moment_is_encrypted_and_opens_its_store_as_the_schedule_says_now(old: dict, now: dict, expected: dict) -> None:
    cluster = PlayedCluster([*stack_of_log(), schedule(destination=now), made("before", "2026-01-20T03:00:00.000Z", destination=old)])
    called(cluster, "restore", "flights", "--at", "2026-01-21T14:30:00+01:00", "--as", "before")
    assert created(cluster)[0][2]["destination"] == expected


def test_a_restore_from_a_checkpoint_that_is_there_makes_no_other() -> None:
    cluster = PlayedCluster([*stack(), checkpoint("old", "2026-01-01T00:00:00Z")])
    called(cluster, "restore", "flights", "--from-checkpoint", "old", "--as", "before")
    assert [(kind, name) for kind, name, _ in created(cluster)] == [("Tablespace", "before")]


def test_a_restore_whose_tablespace_is_refused_makes_no_checkpoint_either() -> None:
    class RefusingTablespaces(PlayedCluster):
        def create(self, kind, document, *, dry_run):
            if kind.name == "Tablespace":
                raise ClusterError("metadata.name is too long")
            return super().create(kind, document, dry_run=dry_run)

    cluster = RefusingTablespaces([*stack(), checkpoint("old", "2026-01-01T00:00:00Z")])
    with pytest.raises(ClusterError, match="too long"):
        called(cluster, "restore", "flights", "--at", "2026-01-21T14:30:00+01:00", "--as", "b" * 41)
    assert created(cluster) == []


def test_a_restore_takes_no_checkpoint_of_another_tablespace() -> None:
    cluster = PlayedCluster([*stack(), checkpoint("old", "2026-01-01T00:00:00Z", tablespaceRef={"name": "hotels"})])
    with pytest.raises(BadInputError, match="it is a Checkpoint of hotels, not of flights"):
        called(cluster, "restore", "flights", "--from-checkpoint", "old", "--as", "before")
    assert cluster.writes == []


def test_a_restore_from_a_checkpoint_that_failed_makes_no_tablespace() -> None:
    failed = checkpoint("old", "2026-01-01T00:00:00Z")
    failed["status"] |= {"phase": "Failed", "message": "the volume is full"}
    cluster = PlayedCluster([*stack(), failed])
    with pytest.raises(BadInputError, match=r"--from-checkpoint old: it failed \(the volume is full\); name one that succeeded"):
        called(cluster, "restore", "flights", "--from-checkpoint", "old", "--as", "before")
    assert cluster.writes == []


@pytest.mark.parametrize(
    ("ready", "exit_code", "said"),
    [
        (condition("Ready", "True", "Ready", "db-herddb-0 leads"), FINE, "it is Ready; 7 rows compared"),
        (condition("Ready", "False", "RestoreFailed", "rows differ"), WRONG, "RestoreFailed: rows differ"),
    ],
)
def test_with_wait_a_restore_ends_when_it_is_compared_or_failed(ready: dict, exit_code: int, said: str) -> None:
    cluster = PlayedCluster([*stack(), schedule()])
    loading = [condition("Ready", "False", "Restoring", "7 of 9 rows")]
    states = iter([{"conditions": loading}, {"conditions": [ready], "restore": {"verified": "7 rows compared"}}])

    def pause(_: float) -> None:
        next(item for item in cluster.documents if item["metadata"]["name"] == "before")["status"] = next(states)

    answer, _ = called(cluster, "restore", "flights", "--at", "2026-01-21T14:30:00Z", "--as", "before", "--wait", pause=pause)
    assert answer.exit_code == exit_code
    assert said in answer.text
