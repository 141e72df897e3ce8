"""`kubectl herdkeeper doctor` and `support-bundle`: what is told as wrong, and what never leaves the cluster."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from played_cluster import Json, PlayedCluster, called, condition, pod, resource, stack

from herdkeeper.plugin.cluster import ClusterError, ForbiddenError
from herdkeeper.plugin.command import FINE, WRONG, BadInputError
from herdkeeper.plugin.kinds import RESOURCES, Kind
from herdkeeper.plugin.redaction import HIDDEN, redacted, redacted_text

OPERATOR = pod("herdkeeper-x", "herdkeeper-operator", "Deployment/herdkeeper")
HUSH = "hush-7e1f"
"""What nobody may see."""


class LoggedCluster(PlayedCluster):
    """Each pod has a log with a password in it. `asked` are the kinds that were read."""

    def in_namespace(self, namespace: str) -> PlayedCluster:
        return LoggedCluster(self.elsewhere)

    def list(self, kind: Kind) -> tuple[Json, ...]:
        self.texts[(kind.name, "")] = []
        return super().list(kind)

    def lines(self, kind: Kind, name: str, subresource: str, query: list[tuple[str, str]]) -> Iterator[str]:
        yield f"2026-11-21T14:30:00Z {name} starts with password={HUSH} and 'token': '{HUSH}'"


def event(message: str, at: str, kind: str = "Warning") -> Json:
    about = {"kind": "Pod", "name": "db-herddb-1"}
    return {
        "kind": "Event",
        "metadata": {"name": at},
        "involvedObject": about,
        "type": kind,
        "reason": "R",
        "message": message,
        "lastTimestamp": at,
    }


def test_nothing_is_wrong_with_a_stack_that_serves() -> None:
    answer, _ = called(PlayedCluster(stack(), elsewhere=[OPERATOR]), "doctor")
    assert (answer.exit_code, answer.text) == (FINE, "Nothing is wrong with the 4 resources in the namespace demo.")


def test_a_namespace_without_resources_is_told_as_one() -> None:
    answer, _ = called(PlayedCluster([], elsewhere=[OPERATOR]), "doctor")
    assert (answer.exit_code, answer.text) == (
        FINE,
        "There is nothing of herdkeeper.io in the namespace demo; name another one with --namespace.",
    )


def test_causes_stand_before_what_rests_on_them_with_what_to_do_logs_and_warnings() -> None:
    documents = stack()
    documents[0]["status"]["conditions"][0] = condition("Ready", "False", "QuorumLost", "1 of 3 voters serves")
    documents[3]["status"]["conditions"][0] = condition("Ready", "False", "NoLeader", "nobody leads")
    documents[-1] = pod("db-herddb-1", "herddb", "HerdDBCluster/db", ready=False)
    documents += [event("old", "1"), event("calm", "3", "Normal"), event("over two lines,\nand new\n", "2")]
    answer, _ = called(LoggedCluster(documents, elsewhere=[OPERATOR]), "doctor")
    lines = answer.text.splitlines()
    assert lines[0] == "ZooKeeperCluster/zk: Ready: QuorumLost: 1 of 3 voters serves"
    do = "Restore the members that the message names. If their data may be gone for good: `recover`."
    assert lines[1] == f"    → {do} (explain QuorumLost)"
    places = [
        next(index for index, line in enumerate(lines) if words in line) for words in ("db-herddb-1: starting", "NoLeader", "last lines of")
    ]
    assert places == sorted(places)
    assert [line.split()[-1] for line in lines if "Pod/db-herddb-1" in line] == ["old", "new"]
    assert answer.exit_code == WRONG


class ContainersCluster(PlayedCluster):
    """A log is its container's name."""

    def lines(self, kind: Kind, name: str, subresource: str, query: list[tuple[str, str]]) -> Iterator[str]:
        yield f"{name} of {dict(query).get('container')}"


def test_the_log_of_a_pod_is_that_of_the_container_that_fails() -> None:
    """While an init container fails, the next one has no log."""
    statuses = {
        "initContainerStatuses": [{"name": "move", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
        "containerStatuses": [{"name": "read-back", "ready": False, "state": {"waiting": {"reason": "PodInitializing"}}}],
    }
    drain = pod("bk-bookie-3-drain-x", "drain", "BookKeeperCluster/bk", ready=False, **statuses)
    answer, _ = called(ContainersCluster([*stack(), drain], elsewhere=[OPERATOR]), "doctor")
    assert answer.document["logs"] == {"bk-bookie-3-drain-x": ["bk-bookie-3-drain-x of move"]}


@pytest.mark.parametrize(
    ("elsewhere", "sentence"),
    [
        ([], "operator: it has no pod in the namespace herdkeeper-system"),
        ([pod("herdkeeper-x", "herdkeeper-operator", "Deployment/herdkeeper", ready=False)], "operator herdkeeper-x: starting"),
    ],
)
def test_an_operator_that_does_not_run_is_the_first_finding(elsewhere: list[Json], sentence: str) -> None:
    answer, _ = called(PlayedCluster(stack(), elsewhere=elsewhere), "doctor")
    assert answer.text.startswith(sentence)
    assert answer.exit_code == WRONG


class ApartCluster(PlayedCluster):
    """The operator's namespace can't be read."""

    refusal: ClusterError

    def in_namespace(self, namespace: str) -> PlayedCluster:
        cluster = RefusingCluster()
        cluster.refusal = self.refusal
        return cluster


@pytest.mark.parametrize(
    ("refusal", "exit_code", "text"),
    [
        (
            ForbiddenError("pods is forbidden"),
            FINE,
            "Nothing is wrong with the 4 resources in the namespace demo.\nWhether the operator runs is unknown: pods is forbidden",
        ),
        (ClusterError("it does not answer"), WRONG, "operator: its pods can't be read: it does not answer"),
    ],
    ids=["no right", "no answer"],
)
def test_an_operator_whose_pods_can_not_be_read_is_not_said_to_run(refusal: ClusterError, exit_code: int, text: str) -> None:
    cluster = ApartCluster(stack())
    cluster.refusal = refusal
    answer, _ = called(cluster, "doctor")
    assert (answer.exit_code, answer.text) == (exit_code, text)


@pytest.mark.parametrize(
    ("resource_number", "conditions"),
    [
        (3, [condition("LogArchived", "Unknown", "Unreadable", "the archive can't be read")]),
        (1, [condition("Progressing", "True", "Unreadable", "the archive can't be read")]),
        (1, [condition("Progressing", "True", "DrainFailed", "the archive can't be read")]),
    ],
)
def test_what_the_operator_can_not_read_or_go_on_with_is_wrong(resource_number: int, conditions: list[Json]) -> None:
    documents = stack()
    status = documents[resource_number]["status"]
    status["conditions"] = [status["conditions"][0], *conditions]
    answer, _ = called(PlayedCluster(documents, elsewhere=[OPERATOR]), "doctor")
    assert f"{conditions[0]['type']}: {conditions[0]['reason']}: the archive can't be read" in answer.text
    assert answer.exit_code == WRONG


def test_a_copy_with_nothing_to_compare_is_not_wrong() -> None:
    documents = stack()
    documents[3]["status"]["conditions"].append(condition("ReplicasVerified", "Unknown", "NotVerified", "there is no follower"))
    assert called(PlayedCluster(documents, elsewhere=[OPERATOR]), "doctor")[0].exit_code == FINE


@pytest.mark.parametrize(
    ("replica", "sentence"),
    [
        ({"role": "failed"}, "failed on db-herddb-1: its node failed to boot it or to follow the log"),
        ({"role": "removed", "verdict": "Different"}, "removed on db-herddb-1: it differs, and is no longer a replica"),
        ({"verdict": "Different"}, "follower on db-herddb-1: differs from the log or the leader"),
    ],
)
def test_a_replica_that_the_tree_calls_wrong_is_a_finding(replica: Json, sentence: str) -> None:
    documents = stack()
    documents[3]["status"]["replicas"][1].update(replica)
    answer, _ = called(PlayedCluster(documents, elsewhere=[OPERATOR]), "doctor")
    assert sentence in answer.text.splitlines()
    assert answer.exit_code == WRONG


LOST = {"kind": "Missing", "severity": "Critical", "ledgerId": 7, "bookieId": "bk-bookie-0-x"}


@pytest.mark.parametrize(
    ("audit", "open_findings"),
    [
        ({"findings": [LOST, LOST]}, "2 Critical, 1 UnderReplicated"),
        ({"findings": [{**LOST, "repair": "Repaired"}, LOST], "findingsNotRepaired": 1}, "1 Critical, 1 UnderReplicated"),
        ({"findings": [{**LOST, "repair": "Repaired"}] * 2, "replicasRepaired": 9, "findingsNotRepaired": 0}, ""),
        ({"findings": [{**LOST, "repair": "Repaired"}], "replicasRepaired": 9, "findingsNotRepaired": 0}, ""),
        (
            {"findings": [{**LOST, "repair": "Repaired"}], "replicasRepaired": 900, "findingsNotRepaired": 2}
            | {"findingsBySeverity": {"critical": 500}},
            "2 Critical",
        ),
        (
            {"findings": [{**LOST, "repair": "Refused"}] * 2, "replicasRepaired": 900, "findingsNotRepaired": 2}
            | {"findingsBySeverity": {"critical": 500, "underReplicated": 7}},
            "2 Critical",
        ),
        ({"findings": [LOST], "instanceId": "an earlier cluster's"}, ""),
        ({"findingsBySeverity": {"critical": 0, "underReplicated": 0, "low": 3}}, ""),
    ],
)
def test_entries_without_their_copies_in_the_newest_audit_are_wrong_until_they_are_repaired(audit: Json, open_findings: str) -> None:
    documents = stack()
    documents[1]["status"]["instanceId"] = "this cluster's"
    counts = {"critical": 2, "underReplicated": 1, "low": 3}
    status = {"phase": "Succeeded", "instanceId": "this cluster's", "findingsBySeverity": counts, **audit}
    documents.append(resource("ReplicationAudit", "nightly", {"bookKeeperRef": {"name": "bk"}}, **status))
    answer, _ = called(PlayedCluster(documents, elsewhere=[OPERATOR]), "doctor")
    assert answer.exit_code == (WRONG if open_findings else FINE)
    if open_findings:
        assert f"ReplicationAudit/nightly: it found entries without enough good copies: {open_findings}" in answer.text
        assert "`audit bk --repair Repair` writes missing copies again" in answer.text


def audited(name: str, day: int, spec: Json | None = None, **status: object) -> Json:
    counted = {"phase": "Succeeded", "instanceId": "this cluster's", "findingsBySeverity": {"critical": 0}, **status}
    item = resource("ReplicationAudit", name, {"bookKeeperRef": {"name": "bk"}, "depth": "Deep", **(spec or {})}, **counted)
    item["metadata"]["creationTimestamp"] = f"2026-11-0{day}T00:00:00Z"
    return item


@pytest.mark.parametrize(
    ("found_by", "later", "told"),
    [
        ({}, [audited("later", 2)], False),
        ({"depth": "Light"}, [audited("later", 2)], False),
        ({"depth": "Light"}, [audited("later", 2, {"depth": "Light"})], False),
        ({"ledgers": [7]}, [audited("later", 2, {"ledgers": [7]})], False),
        ({}, [audited("later", 2, {"depth": "Light"})], True),
        ({}, [audited("later", 2, {"ledgers": [7]})], True),
        ({}, [audited("later", 2, {"filter": {"ledgerRanges": [{"first": 7, "last": 8}]}})], True),
        ({}, [audited("later", 2, phase="Running")], True),
        ({}, [audited("later", 2, phase="Failed")], True),
        ({}, [audited("later", 2), audited("and", 3, phase="Running")], False),
        ({"ledgers": [7]}, [audited("later", 2)], False),
        ({"ledgers": [7]}, [audited("later", 2, {"ledgers": [8]})], True),
        ({"ledgers": [7]}, [audited("later", 2, {"depth": "Light"})], True),
        # it could not read a bookie, or a ledger at all
        ({}, [audited("later", 2, replicasUnknown=7)], True),
        ({}, [audited("later", 2, findingsBySeverity={"unknown": 1})], True),
    ],
)
def test_what_an_audit_found_is_told_until_a_later_one_looked_at_all_of_it(found_by: Json, later: list[Json], told: bool) -> None:
    documents = stack()
    documents[1]["status"]["instanceId"] = "this cluster's"
    earlier = audited("earlier", 1, found_by, findingsBySeverity={"critical": 1}, findings=[LOST])
    answer, _ = called(PlayedCluster([*documents, earlier, *later], elsewhere=[OPERATOR]), "doctor")
    assert ("ReplicationAudit/earlier: it found entries" in answer.text) is told


def test_nothing_is_told_of_the_copies_of_a_deleted_cluster() -> None:
    found = audited("earlier", 1, findingsBySeverity={"critical": 1}, findings=[LOST])
    answer, _ = called(PlayedCluster([found], elsewhere=[OPERATOR]), "doctor")
    assert (answer.exit_code, answer.text) == (FINE, "Nothing is wrong with the 1 resource in the namespace demo.")


def bundle(tmp_path: Path, *documents: Json) -> tuple[LoggedCluster, dict[str, str]]:
    cluster = LoggedCluster([*stack(), *documents], elsewhere=[OPERATOR])
    for item in (*cluster.documents, *cluster.elsewhere):
        if item["kind"] == "Pod":
            item["spec"]["containers"] = [
                {"name": "server", "env": [{"name": "STORE_PASSWORD", "value": HUSH}, {"name": "HEAP", "value": "1g"}]}
            ]
    called(cluster, "support-bundle", "--file", str(tmp_path / "bundle.zip"))
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        return cluster, {name: archive.read(name).decode() for name in archive.namelist()}


def test_no_secret_is_read_and_nothing_that_looks_like_one_is_in_the_bundle(tmp_path: Path) -> None:
    config = resource("HerdDBCluster", "other", {"config": {"server.password": HUSH, "heap": "1g", "jdbc": f"jdbc:x://admin:{HUSH}@host/"}})
    config["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": f"any {HUSH}"}
    secret = {"kind": "Secret", "metadata": {"name": "flights-connection"}, "data": {"password": HUSH}}
    map_ = {"kind": "ConfigMap", "metadata": {"name": "bk"}, "data": {"bk_server.conf": HUSH}}
    cluster, files = bundle(tmp_path, config, secret, map_, event(f"login failed: password={HUSH}", "1"))
    assert not {("Secret", ""), ("ConfigMap", "")} & set(cluster.texts)
    assert [name for name, text in files.items() if HUSH in text] == []
    assert '"1g"' in files["pods.json"]
    assert "starts with password=" + HIDDEN in files["logs/db-herddb-0/server.txt"]


def test_of_somebody_else_s_programs_the_bundle_has_neither_environment_nor_arguments(tmp_path: Path) -> None:
    container = {"name": "shop", "args": ["--pin", HUSH], "env": [{"name": "STRIPE", "value": HUSH}]}
    shop = {"kind": "Deployment", "metadata": {"name": "shop", "annotations": {"copy": HUSH}}, "status": {"readyReplicas": 1}}
    shop["spec"] = {"template": {"spec": {"containers": [container]}}}
    ours = {"kind": "Deployment", "metadata": {"name": "bk-autorecovery", "labels": {"app.kubernetes.io/managed-by": "herdkeeper"}}}
    ours["spec"] = {"template": {"spec": {"containers": [{"name": "autorecovery", "args": ["autorecovery"]}]}}}
    _, files = bundle(tmp_path, shop, ours)
    assert HUSH not in files["deployments.json"]
    theirs, mine = json.loads(files["deployments.json"])
    assert (theirs["spec"], theirs["status"]) == (HIDDEN, {"readyReplicas": 1})
    assert mine["spec"] == ours["spec"]


def test_the_bundle_has_resources_objects_logs_the_diagnosis_and_the_operator_s_log(tmp_path: Path) -> None:
    _, files = bundle(tmp_path)
    assert {item["metadata"]["name"] for item in json.loads(files["tablespaces.json"])} == {"flights"}
    assert {"doctor.txt", "pods.json", "events.json", "statefulsets.json", "operator/logs/herdkeeper-x/server.txt"} <= set(files)


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "bundle.zip").write_text("mine")
    with pytest.raises(BadInputError, match="the file exists; name another"):
        bundle(tmp_path)
    assert (tmp_path / "bundle.zip").read_text() == "mine"


class WithoutEvents(PlayedCluster):
    """The caller may not list events."""

    def list(self, kind: Kind) -> tuple[Json, ...]:
        if kind.name == "Event":
            raise ClusterError("events is forbidden")
        return super().list(kind)


def test_who_may_not_list_events_sees_what_is_wrong_all_the_same() -> None:
    answer, _ = called(WithoutEvents(stack(), elsewhere=[]), "doctor")
    assert answer.text.startswith("operator: it has no pod")
    assert "(no events: events is forbidden)" in answer.text


class PartlyRefusingCluster(PlayedCluster):
    """The caller may not list pods, nor Checkpoints, of the stack's namespace."""

    refused = ("Pod", "Checkpoint")

    def in_namespace(self, namespace: str) -> PlayedCluster:
        return PlayedCluster(self.elsewhere)

    def list(self, kind: Kind) -> tuple[Json, ...]:
        if kind.name in self.refused:
            raise ForbiddenError(f"{kind.plural} is forbidden")
        return super().list(kind)


def test_who_may_not_read_a_part_sees_the_rest_and_is_not_told_that_all_is_well() -> None:
    cluster = PartlyRefusingCluster(stack(), elsewhere=[OPERATOR])
    unread = ["No checkpoints are shown: checkpoints is forbidden", "No pods are shown: pods is forbidden"]
    doctor, _ = called(cluster, "doctor")
    assert doctor.text.splitlines() == ["Nothing is wrong with the 4 resources in the namespace demo.", *unread]
    status, _ = called(cluster, "status")
    assert "✔ Tablespace/flights" in status.text
    assert status.text.splitlines()[-2:] == status.document["notShown"] == unread
    assert (doctor.exit_code, status.exit_code) == (WRONG, WRONG)
    cluster.refused = tuple(kind.name for kind in RESOURCES)
    for command in ("doctor", "status"):
        with pytest.raises(ForbiddenError, match="zookeeperclusters is forbidden"):
            called(cluster, command)


def test_what_is_waited_for_stopped_or_deleted_is_told_and_is_not_wrong() -> None:
    documents = stack()
    documents[2]["status"]["conditions"][1] = condition("Progressing", "False", "Paused", "an annotation stops every change")
    documents[1]["status"]["conditions"][1] = condition("Progressing", "True", "TooFewBookies", "raise spec.bookies until 4 stay")
    documents[0]["metadata"]["deletionTimestamp"] = "2026-11-21T14:30:00Z"
    documents[0]["status"]["conditions"][1] = condition("Progressing", "True", "WaitingForDependents", "first delete BookKeeperCluster bk")
    answer, _ = called(PlayedCluster(documents, elsewhere=[OPERATOR]), "doctor")
    notes = [
        "ZooKeeperCluster/zk: is being deleted; WaitingForDependents: first delete BookKeeperCluster bk",
        "BookKeeperCluster/bk: TooFewBookies: raise spec.bookies until 4 stay",
        "HerdDBCluster/db: Paused: an annotation stops every change",
    ]
    assert (answer.exit_code, answer.text.splitlines()[1:], answer.document["notes"]) == (FINE, notes, notes)


def test_what_a_finding_tells_is_no_note_as_well() -> None:
    documents = stack()
    documents[1]["status"]["conditions"][1] = condition("Progressing", "True", "DrainFailed", "ledger 7 can't be read back")
    answer, _ = called(PlayedCluster(documents, elsewhere=[OPERATOR]), "doctor")
    assert (answer.text.count("ledger 7 can't be read back"), answer.exit_code, "notes" in answer.document) == (1, WRONG, False)


class RefusingCluster(PlayedCluster):
    """Nothing can be listed."""

    refusal: ClusterError | None = None

    def list(self, kind: Kind) -> tuple[Json, ...]:
        raise self.refusal or ClusterError(f"{kind.plural} is forbidden")


def test_what_may_not_be_read_is_said_in_its_place(tmp_path: Path) -> None:
    called(RefusingCluster(), "support-bundle", "--file", str(tmp_path / "bundle.zip"))
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        assert archive.read("jobs.json").decode() == "(can't be read: jobs is forbidden)"


@pytest.mark.parametrize(
    "text",
    [
        f"password={HUSH}", f'"password": "{HUSH} {HUSH}"', f"PASSWD: {HUSH}", f"Authorization: Bearer {HUSH}", f"http://u:{HUSH}@h/",
        f"-----BEGIN RSA PRIVATE KEY-----\n{HUSH}\n-----END RSA PRIVATE KEY-----", f"aws_secret_access_key = {HUSH}",
        f"fs.s3a.secret.key={HUSH}", f"fs.s3a.access.key={HUSH}", f"secretKey: {HUSH}", f"&token={HUSH}&x=1",
        f"AZURE_STORAGE_ACCOUNT_KEY={HUSH}", f"AccountName=a;AccountKey={HUSH};", f"https://a/b?sv=1&sig={HUSH}&se=2",
        f"X-Amz-Signature={HUSH}", f"refused: eyJhbGciOiJI.eyJzdWIiOiIx.{HUSH}",
        f"of-eyJhbGciOiJI.eyJzdWIiOiIx.{HUSH}", f"jwt.eyJhbGciOiJI.eyJzdWIiOiIx.{HUSH}",
        json.dumps({"error": json.dumps({"password": HUSH})}), json.dumps({"password": f'x"{HUSH}'}),
        json.dumps({"error": json.dumps({"password": f'x"{HUSH}'})}),
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_left_out_of_text(text: str) -> None:
    assert HUSH not in redacted_text(text)
    assert HIDDEN in redacted_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "eyJ-" * 100_000,
        "eyJ-" * 50_000 + ".eyJ-" * 50_000,
        "".join(f"password={chr(92) * each}{chr(34)}x " for each in range(1400)),
        "://a:" * 100_000,
        "Bearer " * 100_000,
    ],
    ids=["tokens", "parts of tokens", "quotes", "addresses", "bearers"],
)
def test_a_log_that_was_made_for_it_does_not_hold_up_who_collects_it(text: str) -> None:
    began = time.thread_time()
    redacted_text(text)
    assert time.thread_time() - began < 5


def test_names_of_secrets_and_other_text_stay() -> None:
    document = {"credentialsSecret": "db-credentials", "keysSecretRef": {"name": "keys"}, "message": "the Secret keys is not there", "n": 7}
    assert redacted(document) == document
    assert redacted({"adminToken": HUSH, "list": [{"name": "KEY_PASSWORD", "value": HUSH}]}) == {
        "adminToken": HIDDEN,
        "list": [{"name": "KEY_PASSWORD", "value": HIDDEN}],
    }
