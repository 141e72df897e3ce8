"""A Checkpoint or an audit is one run: made once, never again."""

from __future__ import annotations

import base64
import datetime
import json
from dataclasses import replace
from typing import Any

import pytest
import yaml
from situations import EXAMPLES, bookkeeper_serving, objects, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.api import Checkpoint
from herdkeeper.api.bookkeeper_cluster import BookieStatus
from herdkeeper.api.checkpoint import ComparisonStatus, Lsn, Target
from herdkeeper.api.job import Destination, Encryption, Executors
from herdkeeper.api.resource import Condition, Reference, SecretReference
from herdkeeper.api.tablespace import Bootstrap, ReplicaStatus, TablespaceLog
from herdkeeper.jobs.audit.state import AuditRun
from herdkeeper.jobs.plan import plan_audit, plan_checkpoint
from herdkeeper.jobs.state import CheckpointRun
from herdkeeper.jobs.status import audit_fields, checkpoint_fields, summarize_checkpoint
from herdkeeper.jobs.validate import checkpoint_refusals
from herdkeeper.planning.actions import Apply
from herdkeeper.protocol.audit_finding import AuditDepth, Finding, FindingKind, RepairOutcome, Severity
from herdkeeper.protocol.job_summary import AuditSummary, CheckpointSummary, FollowerComparison, JobOutcome
from herdkeeper.protocol.verification import is_proof
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.spark.build_job import build_removal
from herdkeeper.spark.encryption_keys import why_keys_unusable
from herdkeeper.spark.object_store import StoreSecrets, store_secrets, why_store_unusable, why_two_accounts
from herdkeeper.spark.work import work_of
from herdkeeper_e2e.defaulting import stored

CHECKPOINT, AUDIT = (
    next(stored(document, "demo") for document in yaml.safe_load_all((EXAMPLES / file).read_text()) if document["kind"] == kind)
    for file, kind in (("checkpoint.yaml", "Checkpoint"), ("audit.yaml", "ReplicationAudit"))
)
COPIES = (ReplicaStatus(node="db-herddb-0", role="leader"), ReplicaStatus(node="db-herddb-1", role="follower"))
SEEN = CheckpointRun(
    CHECKPOINT,
    objects=objects(),
    tablespace=ready(quickstart("Tablespace"), replicas=COPIES),
    herddb=ready(quickstart("HerdDBCluster")),
    bookkeeper=bookkeeper_serving(),
)
AUDITED = AuditRun(AUDIT, objects(), bookkeeper_serving(), datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC))
JOB = {
    ("Job", "flights-1-checkpoint"): {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "flights-1-checkpoint", "ownerReferences": [{"uid": CHECKPOINT.metadata.uid}]},
        "status": {},
    }
}


def arguments(plan) -> list[str]:
    job = next(action.manifest for action in plan.actions if isinstance(action, Apply) and action.manifest["kind"] == "Job")
    return list(job["spec"]["template"]["spec"]["containers"][0]["args"])


def test_a_checkpoint_learns_the_position_from_the_leader_and_is_compared_with_the_follower():
    given = arguments(plan_checkpoint(SEEN, "spark:1"))
    hosts = [f"{node}.db-herddb-nodes.demo.svc:9845" for node in ("db-herddb-0", "db-herddb-1")]
    assert [given[given.index(option) + 1] for option in ("--leader-http", "--verify-against")] == hosts


def follower(node: str, verdict: str = "NotChecked", ledger_id: int | None = None) -> ReplicaStatus:
    lsn = Lsn(ledger_id=ledger_id, entry_id=1) if ledger_id is not None else None
    return ReplicaStatus(node=node, role="follower", verdict=verdict, verified_lsn=lsn)


@pytest.mark.parametrize(
    ("followers", "turn"),
    [
        ((follower("n1", "Equal", 9), follower("n2", "Equal", 8)), "n2"),
        ((follower("n1", "Equal", 9), follower("n2")), "n2"),
        ((follower("n1"), follower("n2")), "n1"),
        ((follower("n1", "Different", 7), follower("n2", "Equal", 8)), "n2"),
        ((follower("n1", "Different", 7),), "n1"),
        ((ReplicaStatus(node="n1", role="booting"), follower("n2", "Equal", 8)), "n2"),
    ],
    ids=["longest ago", "never", "by name", "others than one that differs", "but that one when it is alone", "only who follows"],
)
def test_followers_are_compared_in_turn(followers, turn):
    seen = replace(SEEN, tablespace=ready(quickstart("Tablespace"), replicas=(*COPIES[:1], *followers)))
    given = arguments(plan_checkpoint(seen, "spark:1"))
    assert given[given.index("--verify-against") + 1] == f"{turn}.db-herddb-nodes.demo.svc:9845"


def made(lsn: int, verified: str, uuid: str = "a-uuid", **spec) -> Checkpoint:
    """A Checkpoint that was verified in these words."""
    manifest = f"an-instance/{uuid}/manifests/{lsn}.json"
    there = with_status(CHECKPOINT, phase="Succeeded", lsn=Lsn(ledger_id=lsn, entry_id=1), manifest=manifest, verified=verified)
    return with_spec(there, **spec)


def alone(node: str) -> str:
    return f"compared with the follower {node}.db-herddb-nodes.demo.svc:9845 alone, whose tables it begins with"


BY_N2 = "compared with follower n2.db-herddb-nodes.demo.svc:9845"
N1, N2 = follower("n1", "Equal", 7), follower("n2", "Equal", 8)
AWAY = ReplicaStatus(node="n2", role="unknown", verdict="Equal", verified_lsn=N2.verified_lsn)
LEADS = ReplicaStatus(node="n1", role="leader", verdict="Equal", verified_lsn=N1.verified_lsn)
ELSEWHERE = Destination.model_validate({"persistentVolumeClaim": {"claimName": "elsewhere"}})


@pytest.mark.parametrize(
    ("followers", "checkpoints", "turn"),
    [
        ((N1, N2), [made(9, alone("n1"))], "n2"),
        ((follower("n1", "Equal", 8), N2), [made(9, alone("n1"))], "n2"),
        ((N1, N2), [made(9, alone("n1")), made(10, "files re-read")], "n2"),
        ((N1, N2), [made(10, alone("n1")), made(9, BY_N2)], "n2"),
        ((N1, N2), [made(9, alone("n1")), made(10, BY_N2)], "n1"),
        ((N1, N2), [made(9, alone("n1"), destination=ELSEWHERE)], "n1"),
        ((N1, N2), [made(9, alone("n1"), "another-uuid")], "n1"),
        ((N1,), [made(9, alone("n1"))], "n1"),
        ((N1, AWAY), [made(9, alone("n1"))], "n1"),
        ((N1, follower("n2", "Different", 8)), [made(9, alone("n1"))], "n1"),
        ((LEADS, N2), [made(9, alone("n1"))], "n2"),
        ((follower("n1", "Equal", 7), follower("n11", "Equal", 8)), [made(9, alone("n11"))], "n1"),
    ],
    ids=[
        "the other one was compared later",
        "both at the same LSN",
        "a later one asked nobody",
        "an earlier one was proven",
        "it is proven by now",
        "at another destination",
        "of another tablespace",
        "there is no other",
        "the other one is away",
        "the other one differs",
        "it leads by now",
        "a name that begins like another one",
    ],
)
def test_a_chain_that_begins_with_one_followers_tables_is_compared_with_another_one(followers, checkpoints, turn):
    assert compared_next(followers, checkpoints) == turn


def compared_next(followers, checkpoints) -> str:
    leads = () if followers[0].role == "leader" else COPIES[:1]
    tablespace = ready(quickstart("Tablespace"), replicas=(*leads, *followers), uuid="a-uuid")
    given = arguments(plan_checkpoint(replace(SEEN, tablespace=tablespace, checkpoints=tuple(checkpoints)), "spark:1"))
    return given[given.index("--verify-against") + 1].removesuffix(".db-herddb-nodes.demo.svc:9845")


@pytest.mark.parametrize("own", ["n1", "n2", "n3"])
@pytest.mark.parametrize("away", ["n1", "n2", "n3", None])
@pytest.mark.parametrize("order", [(7, 8, 9), (9, 8, 7), (8, 8, 8)])
def test_the_next_checkpoint_proves_a_chain_that_begins_with_one_followers_tables_if_another_one_is_there(own, away, order):
    """By the job's rule: a follower proves nothing of a chain that begins with its own tables, and gets no verdict from that."""
    lsns = dict(zip(("n1", "n2", "n3"), order, strict=True))
    checkpoints, asked = [made(10, alone(own))], []
    for lsn in range(11, 15):
        there = [follower(node, "Equal", at) for node, at in lsns.items() if node != away or lsn > 12]
        node = compared_next(there, checkpoints)
        asked.append(node)
        if node == own and not any(is_proof(each.status.verified) for each in checkpoints):
            checkpoints.append(made(lsn, alone(own)))
        else:
            checkpoints.append(made(lsn, BY_N2.replace("n2", node)))
            lsns[node] = lsn
    assert is_proof(checkpoints[1].status.verified)
    assert {*asked} == {"n1", "n2", "n3"}, "they are compared in turn again"


def begun_with(checkpoint, followers) -> tuple[str | None, str | None]:
    """The follower whose tables may be begun with, and the one that proves them."""
    seen = replace(SEEN, tablespace=ready(quickstart("Tablespace"), replicas=(*COPIES[:1], *followers)))
    given = arguments(plan_checkpoint(replace(seen, checkpoint=checkpoint), "spark:1"))
    found = (given[given.index(option) + 1] if option in given else None for option in ("--base-follower", "--base-witness"))
    source, witness = (None if address is None else address.removesuffix(".db-herddb-nodes.demo.svc:9845") for address in found)
    return source, witness


@pytest.mark.parametrize(
    ("followers", "source", "witness"),
    [
        ((follower("n1"), follower("n2")), "n1", "n2"),
        ((follower("n1"), follower("n2", "Equal", 8)), "n2", "n1"),
        ((follower("n1", "Equal", 8), follower("n2", "Equal", 9)), "n2", "n1"),
        ((follower("n1", "Different", 9), follower("n2", "Equal", 8)), "n2", None),
        ((follower("n1", "Different", 9), follower("n2")), None, None),
        ((follower("n1", "Equal", 8),), "n1", None),
        ((follower("n1"),), None, None),
        ((ReplicaStatus(node="n1", role="booting", verdict="Equal"), follower("n2")), None, None),
    ],
    ids=[
        "never compared, two",
        "one equal",
        "equal last",
        "equal, other differs",
        "never compared, other differs",
        "equal",
        "never",
        "boots",
    ],
)
def test_a_checkpoint_may_begin_with_a_follower_that_another_one_or_an_earlier_checkpoint_proves(followers, source, witness):
    assert begun_with(with_spec(CHECKPOINT, verify="Reread"), followers) == (source, witness)


@pytest.mark.parametrize(
    "change", [{"mode": "Full"}, {"target": Target(lsn=Lsn(ledger_id=3, entry_id=4))}], ids=["the whole log", "not now"]
)
def test_a_checkpoint_that_asks_no_follower_gets_neither_its_name_nor_the_token(change):
    checkpoint = with_spec(CHECKPOINT, verify="Reread", **change)
    assert begun_with(checkpoint, (follower("n1"), follower("n2"))) == (None, None)
    seen = replace(SEEN, tablespace=ready(quickstart("Tablespace"), replicas=(*COPIES[:1], follower("n1"), follower("n2"))))
    assert "HERDDB_TOKEN" not in str(plan_checkpoint(replace(seen, checkpoint=checkpoint), "spark:1").actions)


def test_a_checkpoint_that_is_compared_with_a_follower_shows_it_the_token():
    compared = with_spec(CHECKPOINT, verify="Follower", mode="Full")
    seen = replace(SEEN, tablespace=ready(quickstart("Tablespace"), replicas=(*COPIES[:1], follower("n1"))))
    assert "HERDDB_TOKEN" in str(plan_checkpoint(replace(seen, checkpoint=compared), "spark:1").actions)


@pytest.mark.parametrize(
    ("named", "secret"), [(None, "db-herddb-credentials"), ({"name": "mine"}, "db-herddb-users")], ids=["generated", "named"]
)
def test_the_token_comes_from_the_secret_that_the_operator_makes(named, secret):
    followers = (*COPIES[:1], follower("n1"), follower("n2"))
    database = ready(with_spec(quickstart("HerdDBCluster"), credentials_secret_ref=named and SecretReference.model_validate(named)))
    seen = replace(SEEN, herddb=database, tablespace=ready(quickstart("Tablespace"), replicas=followers))
    plan = plan_checkpoint(seen, "spark:1")
    job = next(action.manifest for action in plan.actions if isinstance(action, Apply) and action.manifest["kind"] == "Job")
    (token,) = [one for one in job["spec"]["template"]["spec"]["containers"][0]["env"] if one["name"] == "HERDDB_TOKEN"]
    assert token["valueFrom"]["secretKeyRef"] == {"name": secret, "key": "token", "optional": True}


def test_a_checkpoints_status_names_the_node_whose_tables_it_was_made_from():
    summary = CheckpointSummary("r", JobOutcome.SUCCEEDED, base_ledger_id=5, base_entry_id=0, base_follower="n1.nodes.demo.svc:9845")
    fields = checkpoint_fields(summary)
    assert (fields["base"], fields["baseFollower"]) == ({"ledgerId": 5, "entryId": 0}, "n1")
    assert checkpoint_fields(replace(summary, base_follower=""))["baseFollower"] is None


def test_a_checkpoints_status_tells_what_it_found_out_about_the_follower():
    found = FollowerComparison("db-herddb-1.db-herddb-nodes.demo.svc:9845", "a-uuid", 4, 99, ("flights",), 1)
    different = checkpoint_fields(CheckpointSummary("r", JobOutcome.INVARIANT_VIOLATED, comparison=found))["comparison"]
    assert ComparisonStatus.model_validate(different) == ComparisonStatus(
        node="db-herddb-1",
        tablespace_uuid="a-uuid",
        lsn=Lsn(ledger_id=4, entry_id=99),
        result="Different",
        different_tables=("flights",),
        different_tables_total=1,
    )
    equal = replace(found, different_tables=(), different_tables_total=0)
    assert checkpoint_fields(CheckpointSummary("r", JobOutcome.SUCCEEDED, comparison=equal))["comparison"]["result"] == "Equal"
    assert checkpoint_fields(CheckpointSummary("r", JobOutcome.SUCCEEDED))["comparison"] is None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_run_that_ended_is_never_repeated_though_its_job_is_gone(phase):
    assert plan_checkpoint(replace(SEEN, checkpoint=with_status(CHECKPOINT, phase=phase)), "spark:1").actions == ()
    assert plan_audit(replace(AUDITED, audit=with_status(AUDIT, phase=phase)), "spark:1").actions == ()


def test_a_job_that_is_there_is_left_alone():
    assert plan_checkpoint(replace(SEEN, objects=objects(JOB)), "spark:2").actions == ()


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (replace(SEEN, tablespace=None), Reason.WAITING_FOR_TABLESPACE),
        (replace(SEEN, tablespace=quickstart("Tablespace")), Reason.WAITING_FOR_TABLESPACE),
        (replace(SEEN, tablespace=ready(quickstart("Tablespace"), replicas=COPIES[:1])), Reason.WAITING_FOR_FOLLOWER),
    ],
    ids=["no tablespace", "not Ready", "no follower"],
)
def test_a_checkpoint_waits_for_what_it_needs(seen, reason):
    plan = plan_checkpoint(seen, "spark:1")
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is reason


STORE: dict[str, object] = {
    "uri": "s3://backups/flights",
    "endpoint": "http://store:9000",
    "credentialsSecretRef": {"name": "store-keys"},
    "caSecretRef": {"name": "store-ca"},
}
IN_STORE = with_spec(CHECKPOINT, destination=Destination.model_validate({"objectStore": STORE}))
KEYS = {"AWS_ACCESS_KEY_ID": "an id", "AWS_SECRET_ACCESS_KEY": "a secret"}
FIELD = "spec.destination.objectStore"


@pytest.mark.parametrize(
    ("secrets", "expected"),
    [
        ({}, f"{FIELD}.credentialsSecretRef.name is store-keys: the Secret does not exist; create it with AWS_ACCESS_KEY_ID and"),
        (
            {"store-keys": KEYS | {"AWS_SECRET_ACCESS_KEY": ""}},
            f"{FIELD}.credentialsSecretRef.name is store-keys: that Secret lacks AWS_SE",
        ),
        ({"store-keys": KEYS}, f"{FIELD}.caSecretRef.name is store-ca: the Secret does not exist; create it with ca.crt"),
        ({"store-keys": KEYS, "store-ca": {"tls.crt": "x"}}, f"{FIELD}.caSecretRef.name is store-ca: that Secret lacks ca.crt; add it"),
        ({"store-keys": KEYS, "store-ca": {"ca.crt": "x"}}, None),
    ],
    ids=["no keys", "a key is empty", "no certificates", "another key", "all is there"],
)
def test_a_checkpoint_in_an_object_store_waits_until_its_secrets_are_whole_and_never_shows_them(secrets, expected):
    store = IN_STORE.spec.destination.object_store
    plan = plan_checkpoint(replace(SEEN, store_unusable=why_store_unusable(store, secrets, FIELD), checkpoint=IN_STORE), "spark:1")
    if expected is None:
        assert arguments(plan)[arguments(plan).index("--destination") + 1] == "s3://backups/flights"
        return
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_SECRET
    assert plan.wait.message.startswith(expected)
    assert "a secret" not in plan.wait.message


VOLUME = {"persistentVolumeClaim": {"claimName": "checkpoints"}}
IN_AZURE = {"uri": "az://backups/flights", "storageAccount": "account"}


@pytest.mark.parametrize(
    ("store", "keys"),
    [
        ({"uri": "s3://backups"}, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ({"uri": "gs://backups"}, "GOOGLE_SERVICE_ACCOUNT_KEY"),
        (IN_AZURE, "AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
def test_each_kind_of_store_waits_for_the_keys_that_it_is_opened_with(store, keys):
    place = Destination.model_validate({"objectStore": {**store, "credentialsSecretRef": {"name": "keys"}}})
    missing = why_store_unusable(place.object_store, {"keys": None}, FIELD)
    assert missing.why == f"{FIELD}.credentialsSecretRef.name is keys: the Secret does not exist; create it with {keys}"
    held = dict.fromkeys(keys.split(" and "), "a value")
    found = store_secrets(place.object_store, {"keys": {**held, "another": "key"}}, {"keys": "a-uid"}, FIELD)
    assert found == StoreSecrets({"keys": "a-uid", **{f"keys/{key}": "a value" for key in held}})


def pod_of(destination, archive=None, executors=0):
    """The pod of a Checkpoint's driver there, and what executors' pods are made from."""
    job = CHECKPOINT.spec.job.model_copy(update={"executors": Executors(instances=executors)})
    log = TablespaceLog.model_validate({"archive": {"destination": archive}} if archive else {})
    archived = with_spec(ready(quickstart("Tablespace"), replicas=COPIES), log=log)
    there = with_spec(CHECKPOINT, destination=Destination.model_validate(destination), job=job)
    plan = plan_checkpoint(replace(SEEN, tablespace=archived, checkpoint=there), "spark:1")
    template = plan.actions[-1].manifest["spec"]["template"]
    given = arguments(plan)
    executor = json.loads(given[given.index("--executor-pod") + 1]) if executors else None
    return template, executor, [action.manifest for action in plan.actions[:-1]]


def test_without_a_secret_pods_run_as_the_service_account_that_the_cloud_knows():
    by_account = {"objectStore": {**IN_AZURE, "serviceAccountName": "backups"}}
    for destination, archive in ((by_account, None), (VOLUME, by_account), (by_account, by_account)):
        template, _, others = pod_of(destination, archive)
        assert (template["spec"]["serviceAccountName"], template["spec"]["automountServiceAccountToken"]) == ("backups", False)
        assert template["metadata"]["labels"]["azure.workload.identity/use"] == "true"
        assert others == []
    on_google, _, _ = pod_of({"objectStore": {"uri": "gs://backups", "serviceAccountName": "backups"}})
    assert "azure.workload.identity/use" not in on_google["metadata"]["labels"]
    by_secret, _, _ = pod_of({"objectStore": STORE})
    assert "serviceAccountName" not in by_secret["spec"]


def test_a_driver_that_runs_as_that_account_drives_executors_by_a_token_of_its_own_one():
    template, executor, others = pod_of({"objectStore": {**IN_AZURE, "serviceAccountName": "backups"}}, executors=2)
    (made,) = (each for each in others if each["kind"] == "ServiceAccount")
    (token,) = (each for each in others if each["kind"] == "Secret")
    assert token["metadata"]["annotations"]["kubernetes.io/service-account.name"] == made["metadata"]["name"]
    assert token["type"] == "kubernetes.io/service-account-token"
    assert (template["spec"]["serviceAccountName"], template["spec"]["automountServiceAccountToken"]) == ("backups", False)
    mounts = {mount["name"]: mount["mountPath"] for mount in template["spec"]["containers"][0]["volumeMounts"]}
    assert mounts["token"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    assert [each["secret"]["secretName"] for each in template["spec"]["volumes"] if each["name"] == "token"] == [made["metadata"]["name"]]
    assert (executor["spec"]["serviceAccountName"], executor["spec"]["automountServiceAccountToken"]) == ("backups", False)
    assert executor["metadata"]["labels"]["azure.workload.identity/use"] == "true"
    assert "token" not in str(executor["spec"].get("volumes", ""))


def test_a_destination_and_an_archive_that_name_two_service_accounts_are_told_apart():
    one, other = (
        Destination.model_validate({"objectStore": {"uri": "gs://backups", "serviceAccountName": name}}) for name in ("backups", "archives")
    )
    refused = why_two_accounts(one, other, "spec.log.archive.destination.")
    assert refused.reason is Reason.INVALID_SPEC
    assert refused.why.startswith("spec.log.archive.destination.objectStore.serviceAccountName is archives, and that of the destination")
    assert why_two_accounts(one, one, "") is None
    assert why_two_accounts(one, Destination.model_validate(VOLUME), "") is None
    assert why_two_accounts(one, None, "") is None


def test_what_a_job_does_in_azure_is_seen_as_the_place_that_its_checkpoint_names():
    there = with_spec(CHECKPOINT, destination=Destination.model_validate({"objectStore": {**IN_AZURE, "serviceAccountName": "backups"}}))
    (job,) = (
        action.manifest for action in plan_checkpoint(replace(SEEN, checkpoint=there), "spark:1").actions if isinstance(action, Apply)
    )
    assert [(work.place, work.at(there.place)) for work in work_of({**job, "status": {}})] == [("az://backups/flights at account", True)]
    assert there.spec.destination.described == "the object store az://backups/flights at account"


A_KEY, ANOTHER_KEY = base64.b64encode(b"1" * 32).decode(), base64.b64encode(b"2" * 32).decode()
NAMED, UNNAMED = ({"keysSecretRef": {"name": "backup-keys"}} | chosen for chosen in ({"currentKey": "2026-11"}, {}))
SECRET = "spec.destination.encryption.keysSecretRef.name is backup-keys: "


@pytest.mark.parametrize(
    ("encryption", "values", "expected"),
    [
        (NAMED, None, f"{SECRET}the Secret does not exist; create it with the key 2026-11: 32 random bytes as base64"),
        (NAMED, {}, f"{SECRET}that Secret is empty; add the key 2026-11"),
        (UNNAMED, None, f"{SECRET}the Secret does not exist; create it with a key"),
        (NAMED, {"2025-11": A_KEY}, f"{SECRET}that Secret lacks the key 2026-11, which currentKey names, and has 2025-11; add it"),
        (NAMED, {"2026-11": A_KEY[:-8]}, f"{SECRET}its entry 2026-11 "),
        (NAMED, {"2026-11": A_KEY, "old": "short"}, f"{SECRET}its entry old "),
        (
            UNNAMED,
            {"a": A_KEY, "b": ANOTHER_KEY},
            f"{SECRET}that Secret has several keys (a, b); name the key for new files in currentKey",
        ),
        (UNNAMED, {"a": A_KEY + "\n"}, "/encryption/backup-keys"),
        (NAMED, {"2025-11": ANOTHER_KEY, "2026-11": A_KEY}, "/encryption/backup-keys/2026-11"),
    ],
    ids=["no Secret", "empty", "no Secret, no name", "not there", "no key", "another is no key", "two", "the only one", "rotated"],
)
def test_a_checkpoint_that_is_encrypted_waits_until_its_keys_are_there_and_never_shows_them(encryption, values, expected):
    sealed = with_spec(CHECKPOINT, destination=Destination.model_validate(VOLUME | {"encryption": encryption}))
    unusable = why_keys_unusable(sealed.spec.destination.encryption, values, "spec.destination.encryption", writes=True)
    plan = plan_checkpoint(replace(SEEN, store_unusable=unusable, checkpoint=sealed), "spark:1")
    if expected.startswith("/"):
        assert arguments(plan)[arguments(plan).index("--encrypt-with") + 1] == expected
        return
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_SECRET
    assert plan.wait.message.startswith(expected)
    assert not any(value and value in plan.wait.message for value in (values or {}).values())


def test_who_only_reads_needs_keys_but_none_that_new_files_get():
    encryption = Encryption.model_validate(UNNAMED)
    assert why_keys_unusable(encryption, {"a": A_KEY, "b": ANOTHER_KEY}, "f", writes=False) is None
    assert why_keys_unusable(Encryption.model_validate(NAMED), {"old": A_KEY}, "f", writes=False) is None
    assert why_keys_unusable(encryption, {}, "f", writes=False) is not None


def test_the_driver_and_executors_mount_the_keys_and_a_removal_needs_none():
    sealed = with_spec(CHECKPOINT, destination=Destination.model_validate(VOLUME | {"encryption": NAMED}))
    sealed = with_spec(sealed, job=sealed.spec.job.model_copy(update={"executors": Executors(instances=2)}))
    plan = plan_checkpoint(replace(SEEN, checkpoint=sealed), "spark:1")
    (job,) = (action.manifest for action in plan.actions if isinstance(action, Apply) and action.manifest["kind"] == "Job")
    driver = job["spec"]["template"]["spec"]
    executor = json.loads(arguments(plan)[arguments(plan).index("--executor-pod") + 1])["spec"]
    for pod in (driver, executor):
        (volume,) = (volume for volume in pod["volumes"] if "secret" in volume)
        assert volume["secret"] == {"secretName": "backup-keys", "defaultMode": 0o440}
        (mount,) = (mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == volume["name"])
        assert (mount["mountPath"], mount["readOnly"]) == ("/encryption/backup-keys", True)
        assert {"name": "ENCRYPTION_KEYS", "value": "/encryption/backup-keys"} in pod["containers"][0]["env"]
    assert "backup-keys" not in json.dumps(build_removal(sealed, None, "spark:1"))


def test_a_checkpoint_gets_the_keys_of_the_archive_beside_its_own_and_each_secret_once():
    def mounted(of_checkpoint, of_archive):
        log = TablespaceLog.model_validate({"archive": {"destination": VOLUME | of_archive}})
        archived = with_spec(ready(quickstart("Tablespace"), replicas=COPIES), log=log)
        checkpoint = with_spec(CHECKPOINT, destination=Destination.model_validate(VOLUME | of_checkpoint))
        plan = plan_checkpoint(replace(SEEN, tablespace=archived, checkpoint=checkpoint), "spark:1")
        (job,) = (action.manifest for action in plan.actions if isinstance(action, Apply))
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert "--archive" not in container["args"], "it is at the destination, whatever the keys"
        keys = next((entry["value"] for entry in container["env"] if entry["name"] == "ENCRYPTION_KEYS"), None)
        paths = [mount["mountPath"] for mount in container["volumeMounts"] if mount["mountPath"].startswith("/encryption/")]
        assert keys == (":".join(paths) or None)
        assert len({volume["name"] for volume in pod["volumes"]}) == len(pod["volumes"])
        return [path.removeprefix("/encryption/") for path in paths], "--encrypt-with" in container["args"]

    own, others = {"encryption": NAMED}, {"encryption": {"keysSecretRef": {"name": "archive-keys"}}}
    assert mounted({}, {}) == ([], False)
    assert mounted(own, {}) == (["backup-keys"], True)
    assert mounted({}, others) == (["archive-keys"], False)
    assert mounted(own, others) == (["backup-keys", "archive-keys"], True)
    assert mounted(own, own) == (["backup-keys"], True)


def test_what_a_job_does_in_an_object_store_is_seen_as_the_place_that_its_checkpoint_names():
    (job,) = (
        action.manifest for action in plan_checkpoint(replace(SEEN, checkpoint=IN_STORE), "spark:1").actions if isinstance(action, Apply)
    )
    (work,) = work_of({**job, "status": {}})
    assert (work.place, work.at(IN_STORE.place), work.at(CHECKPOINT.place)) == ("s3://backups/flights at http://store:9000", True, False)
    (on_volume,) = (action.manifest for action in plan_checkpoint(SEEN, "spark:1").actions if isinstance(action, Apply))
    assert [work.place for work in work_of({**on_volume, "status": {}})] == [CHECKPOINT.place]


def test_a_checkpoint_waits_until_the_store_with_the_archive_can_be_opened_and_names_whose_field_it_is():
    field = "spec.log.archive.destination.objectStore"
    unusable = why_store_unusable(IN_STORE.spec.destination.object_store, {}, field)
    plan = plan_checkpoint(replace(SEEN, archive_unusable=unusable), "spark:1")
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.WAITING_FOR_SECRET
    name = SEEN.tablespace.metadata.name
    assert plan.wait.message.startswith(
        f"the log is archived by the Tablespace {name}, whose {field}.credentialsSecretRef.name is store-keys"
    )


def test_what_a_job_reads_of_an_archive_in_another_store_is_not_taken_for_work_at_its_destination_s_endpoint():
    log = TablespaceLog.model_validate({"archive": {"destination": {"objectStore": {**STORE, "uri": "s3://archives", "endpoint": None}}}})
    archived = with_spec(ready(quickstart("Tablespace"), replicas=COPIES), log=log)
    (job,) = (action.manifest for action in plan_checkpoint(replace(SEEN, tablespace=archived, checkpoint=IN_STORE), "spark:1").actions)
    assert {work.place for work in work_of({**job, "status": {}})} == {IN_STORE.place, "s3://archives"}


def test_executors_that_write_into_an_object_store_read_the_archive_from_its_volume():
    log = TablespaceLog.model_validate({"archive": {"destination": {"persistentVolumeClaim": {"claimName": "archives"}}}})
    archived = with_spec(ready(quickstart("Tablespace"), replicas=COPIES), log=log)
    apart = with_spec(IN_STORE, job=IN_STORE.spec.job.model_copy(update={"executors": Executors(instances=2)}))
    given = arguments(plan_checkpoint(replace(SEEN, tablespace=archived, checkpoint=apart), "spark:1"))
    assert [given[given.index(option) + 1] for option in ("--archive", "--executor-volume")] == ["/archive", "archives:/archive"]


def test_jobs_show_the_certificate_that_the_servers_of_the_log_ask_for():
    address = "zk-zookeeper-0.zk-zookeeper-members.demo.svc:2281"
    asks = with_status(bookkeeper_serving(), **{**bookkeeper_serving().status.model_dump(), "zoo_keeper_address": address})
    for plan in (plan_checkpoint(replace(SEEN, bookkeeper=asks), "s"), plan_audit(replace(AUDITED, bookkeeper=asks), "s")):
        spec = plan.actions[-1].manifest["spec"]["template"]["spec"]
        assert [each["secret"]["secretName"] for each in spec["volumes"] if each["name"] == "identity"] == ["bk-bookie-readers"]
        assert {"name": "IDENTITY_FOLDER", "value": "/identity"} in spec["containers"][0]["env"]


def test_an_audit_that_repairs_does_the_work_of_bookies_and_shows_their_certificate():
    address = "zk-zookeeper-0.zk-zookeeper-members.demo.svc:2281"
    asks = with_status(bookkeeper_serving(), **{**bookkeeper_serving().status.model_dump(), "zoo_keeper_address": address})
    for repair, secret in (("DryRun", "bk-bookie-readers"), ("Repair", "bk-bookie-identity")):
        audit = AUDIT.model_copy(update={"spec": AUDIT.spec.model_copy(update={"repair": repair})})
        (job,) = plan_audit(replace(AUDITED, bookkeeper=asks, audit=audit), "s").actions
        volumes = job.manifest["spec"]["template"]["spec"]["volumes"]
        assert [each["secret"]["secretName"] for each in volumes if each["name"] == "identity"] == [secret]


def test_an_audit_runs_also_on_a_cluster_that_is_not_ready_since_that_is_when_it_is_needed():
    unready = bookkeeper_serving().model_copy(update={"status": bookkeeper_serving().status.model_copy(update={"conditions": ()})})
    assert arguments(plan_audit(replace(AUDITED, bookkeeper=unready), "spark:1"))


@pytest.mark.parametrize(("repair", "expected"), [(None, None), ("Report", None), ("DryRun", "dry-run"), ("Repair", "repair")])
def test_an_audit_writes_only_where_the_resource_says_so(repair, expected):
    audit = AUDIT if repair is None else AUDIT.model_copy(update={"spec": AUDIT.spec.model_copy(update={"repair": repair})})
    given = arguments(plan_audit(replace(AUDITED, audit=audit), "spark:1"))
    assert (given[given.index("--repair") + 1] if "--repair" in given else None) == expected


def test_a_light_audit_is_told_so_and_a_deep_one_is_the_default():
    light = AUDIT.model_copy(update={"spec": AUDIT.spec.model_copy(update={"depth": "Light"})})
    assert "--depth" not in arguments(plan_audit(AUDITED, "spark:1"))
    given = arguments(plan_audit(replace(AUDITED, audit=light), "spark:1"))
    assert given[given.index("--depth") + 1] == "light"


def test_an_audit_is_told_in_which_racks_bookies_stand_that_new_copies_can_be_on():
    where = (("b0", "Writable", "a"), ("b1", "Away", "b"), ("b2", "Lost", "c"), ("b3", "Starting", None))
    bookies = tuple(BookieStatus(number=n, bookie_id=name, state=state, rack=rack) for n, (name, state, rack) in enumerate(where))
    placed = bookkeeper_serving().model_copy(update={"status": bookkeeper_serving().status.model_copy(update={"bookies": bookies})})
    given = arguments(plan_audit(replace(AUDITED, bookkeeper=placed), "spark:1"))
    assert given[given.index("--racks") + 1] == "b0=a,b1=b"
    assert given[given.index("--min-racks") + 1] == "2"


def test_the_status_counts_all_findings_by_severity_also_those_that_did_not_fit():
    summary = AuditSummary("r", JobOutcome.SUCCEEDED, critical=2, at_risk=7, copies_unknown=9, findings_omitted=9)
    fields = audit_fields(summary, "Report")
    assert fields["findingsBySeverity"] == {"critical": 2, "underReplicated": 0, "atRisk": 7, "pending": 0, "unknown": 0, "low": 0}
    assert (fields["findingsTotal"], fields["replicasUnknown"]) == (9, 9)


def test_the_status_of_a_light_audit_tells_how_much_was_not_read():
    summary = AuditSummary("r", JobOutcome.SUCCEEDED, copies_verified=24, copies_unread=2976, depth=AuditDepth.LIGHT)
    fields = audit_fields(AuditSummary.from_json(summary.to_json()), "Report")
    assert (fields["replicas"], fields["replicasUnread"]) == (24, 2976)
    assert "replicasUnread" not in audit_fields(replace(summary, depth=AuditDepth.DEEP), "Report")


def test_an_audits_status_tells_what_became_of_each_finding():
    refused = Finding(
        FindingKind.MISSING, Severity.CRITICAL, 3, 5, 6, "b1", 0, 3, 0, repair=RepairOutcome.REFUSED, repair_detail="no good replica"
    )
    summary = AuditSummary("r", JobOutcome.SUCCEEDED, copies_repaired=4, not_repaired=1, findings=(refused,))
    fields = audit_fields(AuditSummary.from_json(summary.to_json()), "Repair")
    assert (fields["replicasRepaired"], fields["findingsNotRepaired"]) == (4, 1)
    assert (fields["findings"][0]["repair"], fields["findings"][0]["repairDetail"]) == ("Refused", "no good replica")


def test_the_status_of_an_audit_that_only_reports_says_nothing_about_repairs():
    missing = Finding(FindingKind.MISSING, Severity.CRITICAL, 3, 5, 6, "b1", 0, 3, 0)
    fields = audit_fields(AuditSummary("r", JobOutcome.SUCCEEDED, findings=(missing,)), "Report")
    assert not {"replicasRepaired", "replicasRepairable", "findingsNotRepaired"} & fields.keys()
    assert "repair" not in fields["findings"][0]


def test_the_status_of_a_dry_run_tells_what_a_repair_would_do_and_not_that_anything_was_repaired():
    would = Finding(FindingKind.MISSING, Severity.UNDER_REPLICATED, 3, 5, 6, "b1", 0, 3, 2, repair=RepairOutcome.WOULD_REPAIR)
    summary = AuditSummary("r", JobOutcome.SUCCEEDED, copies_repairable=2, not_repaired=1, findings=(would,))
    fields = audit_fields(AuditSummary.from_json(summary.to_json()), "DryRun")
    assert (fields["replicasRepairable"], fields["findingsNotRepaired"]) == (2, 1)
    assert "replicasRepaired" not in fields
    assert fields["findings"][0]["repair"] == "WouldRepair"


def test_a_repair_that_ended_early_does_not_claim_that_nothing_was_repaired():
    assert "replicasRepaired" not in audit_fields(AuditSummary("r", JobOutcome.RETRYABLE, "ZooKeeper went away"), "Repair")


def test_the_result_of_a_run_stays_when_its_job_and_pods_are_gone():
    ended = with_status(CHECKPOINT, phase="Succeeded", rows=7, message="checkpoint at 1,2 written")
    summary = summarize_checkpoint(replace(SEEN, objects=objects(), checkpoint=ended))
    assert summary.health.status == "True"
    assert (summary.fields["phase"], summary.fields["rows"]) == ("Succeeded", 7)


def failed_before(reason: Reason, **status: Any) -> dict[str, Any]:
    """The status fields that follow from a stored status of a failed Checkpoint, whose Ready has this reason."""
    made = {"status": "False", "message": "no", "last_transition_time": "2026-11-21T14:30:00Z", "observed_generation": 1}
    failed = with_status(CHECKPOINT, phase="Failed", conditions=(Condition(type="Ready", reason=reason, **made),), **status)
    if reason is Reason.DELETING:
        failed = with_metadata(failed, deletion_timestamp="2026-11-21T14:30:00Z")
    return summarize_checkpoint(replace(SEEN, objects=objects(), checkpoint=failed)).fields


def test_why_a_run_failed_stays_readable_while_its_message_tells_of_its_deletion():
    deleted = failed_before(Reason.DELETING, failure="the bookies are full", message="it is being deleted: a Job removes its files")
    assert deleted["failure"] == "the bookies are full"


@pytest.mark.parametrize("reason", [Reason.FAILED, Reason.RESULT_UNKNOWN])
def test_the_message_of_a_run_that_failed_under_an_earlier_version_tells_why(reason):
    assert failed_before(reason, message="the bookies are full")["failure"] == "the bookies are full"
    assert "failure" not in failed_before(Reason.DELETING, message="it is being deleted: a Job removes its files")


def test_a_checkpoint_with_a_job_is_not_refused_for_followers_that_were_taken_away():
    """Its end would not be told, and its schedule would wait for it."""
    alone = with_spec(quickstart("Tablespace"), replicas=1)
    assert [each.path for each in checkpoint_refusals(with_status(CHECKPOINT, phase="Pending"), alone)] == ["spec.verify"]
    for begun in ({"phase": "Running", "job": "a-job"}, {"phase": "Succeeded"}, {"phase": "Failed"}):
        assert checkpoint_refusals(with_status(CHECKPOINT, **begun), alone) == ()


def test_the_result_of_an_earlier_checkpoint_of_this_name_is_not_that_of_this_one():
    name, ended_at = "flights-1-checkpoint", "2026-11-21T14:30:00Z"
    said = CheckpointSummary("r", JobOutcome.SUCCEEDED, "checkpoint at 3,9", ledger_id=3, entry_id=9, verified="compared with follower n1")
    complete = {**JOB[("Job", name)], "status": {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": ended_at}}
    driver = {"name": "driver", "state": {"terminated": {"message": said.to_json()}}}
    pod = {
        "metadata": {"name": "p", "creationTimestamp": ended_at, "labels": {"batch.kubernetes.io/job-name": name}},
        "status": {"phase": "Succeeded", "containerStatuses": [driver]},
    }
    left = replace(SEEN, objects=objects({("Job", name): complete, ("Pod", "p"): pod}))
    assert summarize_checkpoint(left).fields["lsn"] == {"ledgerId": 3, "entryId": 9}
    again = replace(left, checkpoint=with_metadata(CHECKPOINT, uid="another"))
    summary = summarize_checkpoint(again)
    assert (summary.fields, summary.health.status) == ({"phase": "Pending"}, "False")
    waiting = plan_checkpoint(again, "spark:1")
    assert (waiting.actions, waiting.wait.reason) == ((), Reason.WAITING_FOR_OTHERS)
    assert f"the Job {name} belongs to an earlier resource of this name" in waiting.wait.message
    assert plan_checkpoint(replace(again, objects=objects()), "spark:1").actions, "the run begins once that Job is gone"


def test_a_pod_of_the_earlier_job_tells_no_result_of_this_one():
    """The pods of a deleted Job go after it, those on a node that is down much later."""
    name, ended_at = "flights-1-checkpoint", "2026-11-21T14:30:00Z"
    said = CheckpointSummary("r", JobOutcome.SUCCEEDED, "checkpoint at 3,9", ledger_id=3, entry_id=9, verified="compared with follower n1")
    driver = {"name": "driver", "state": {"terminated": {"message": said.to_json()}}}

    def told(controller: str) -> Any:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": controller, "controller": True}
        labels = {"batch.kubernetes.io/job-name": name}
        pod = {
            "metadata": {"name": "p", "creationTimestamp": ended_at, "labels": labels, "ownerReferences": [owner]},
            "status": {"phase": "Succeeded", "containerStatuses": [driver]},
        }
        job = JOB[("Job", name)]
        failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}
        ended = {**job, "metadata": {**job["metadata"], "uid": "this"}, "status": failed}
        return summarize_checkpoint(replace(SEEN, objects=objects({("Job", name): ended, ("Pod", "p"): pod})))

    assert told("this").fields["verified"] == "compared with follower n1"
    assert "verified" not in told("earlier").fields
    assert "checkpoint at 3,9" not in told("earlier").health.message


def test_a_job_whose_driver_said_nothing_is_still_told_of():
    failed = {
        **JOB[("Job", "flights-1-checkpoint")],
        "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]},
    }
    summary = summarize_checkpoint(replace(SEEN, objects=objects({("Job", "flights-1-checkpoint"): failed})))
    assert (summary.fields["phase"], summary.health.reason) == ("Failed", Reason.FAILED)
    assert "DeadlineExceeded" in summary.health.message
    assert summary.fields["failure"] == summary.health.message


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ({"terminated": {"exitCode": 3, "message": CheckpointSummary("r", JobOutcome.RETRYABLE, "StackOverflowError").to_json()}}, ""),
        (
            {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            "its last pod ended without a termination message (OOMKilled, exit code 137)",
        ),
        (None, "its last pod ended without a termination message (Evicted: The node was low on resource: memory.)"),
    ],
    ids=["with last words", "killed for want of memory", "evicted"],
)
def test_of_a_failed_job_the_last_pods_end_is_told_and_not_the_first_ones(ended, words):
    def pod(number: int, state: dict[str, Any] | None) -> dict[str, Any]:
        labels = {"batch.kubernetes.io/job-name": "flights-1-checkpoint"}
        metadata = {"name": f"p{number}", "creationTimestamp": f"2026-11-21T14:3{number}:00Z", "labels": labels}
        containers = [{"name": "driver", "state": state}] if state else []
        evicted = {} if state else {"reason": "Evicted", "message": "The node was low on resource: memory."}
        return {"metadata": metadata, "status": {"phase": "Failed", "containerStatuses": containers, **evicted}}

    transient = CheckpointSummary("r", JobOutcome.RETRYABLE, "ZooKeeper was away").to_json()
    failed = {**JOB[("Job", "flights-1-checkpoint")], "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "Backoff"}]}}
    found = {
        ("Job", "flights-1-checkpoint"): failed,
        ("Pod", "p1"): pod(1, {"terminated": {"exitCode": 3, "message": transient}}),
        ("Pod", "p2"): pod(2, ended),
    }
    message = summarize_checkpoint(replace(SEEN, objects=objects(found))).health.message
    assert "ZooKeeper was away" not in message
    assert (words or "StackOverflowError") in message


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"lsn": {"ledgerId": 12, "entryId": 340}}, "12,340"),
        ({"timestamp": "2026-11-21T14:30:00+01:00"}, "2026-11-21T14:30:00+01:00"),
    ],
)
def test_a_moment_of_the_past_is_handed_on_as_it_was_written_and_needs_no_leader(target, expected):
    spec = CHECKPOINT.spec.model_copy(update={"target": Target.model_validate(target)})
    given = arguments(plan_checkpoint(replace(SEEN, checkpoint=CHECKPOINT.model_copy(update={"spec": spec})), "spark:1"))
    assert given[given.index("--to") + 1] == expected
    assert "--leader-http" not in given
    assert given[given.index("--verify-against") + 1].startswith("db-herddb-1.")


@pytest.mark.parametrize(("mode", "expected"), [("Auto", ()), ("Full", ("--mode", "Full")), ("Incremental", ("--mode", "Incremental"))])
def test_what_a_checkpoint_shall_be_made_from_is_handed_on(mode, expected):
    spec = CHECKPOINT.spec.model_copy(update={"mode": mode})
    given = arguments(plan_checkpoint(replace(SEEN, checkpoint=CHECKPOINT.model_copy(update={"spec": spec})), "spark:1"))
    assert tuple(given[given.index("--mode") : given.index("--mode") + 2] if "--mode" in given else ()) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [({}, "604800"), ({"full_every": "36h"}, "129600"), ({"full_every": "36h", "mode": "Incremental"}, None)],
    ids=["a week where nobody says it", "other than the default", "never, since increments are asked for"],
)
def test_after_how_long_a_checkpoint_shall_read_the_whole_log_is_handed_on(spec, expected):
    checkpoint = CHECKPOINT.model_copy(update={"spec": CHECKPOINT.spec.model_copy(update=spec)})
    given = arguments(plan_checkpoint(replace(SEEN, checkpoint=checkpoint), "spark:1"))
    assert (given[given.index("--full-every-seconds") + 1] if "--full-every-seconds" in given else None) == expected


def test_the_status_tells_what_a_checkpoint_was_made_from():
    said = CheckpointSummary("r", JobOutcome.SUCCEEDED, ledger_id=12, entry_id=340, entries_read=7, base_ledger_id=11, base_entry_id=2)
    fields = checkpoint_fields(CheckpointSummary.from_json(said.to_json()))
    assert (fields["base"], fields["entriesRead"], fields["restartLsn"]) == ({"ledgerId": 11, "entryId": 2}, 7, None)


def test_the_status_tells_where_the_report_of_all_checkpoints_is_when_it_was_written():
    said = CheckpointSummary("r", JobOutcome.SUCCEEDED, report="an-instance/a-uuid/report.html")
    assert checkpoint_fields(CheckpointSummary.from_json(said.to_json()))["report"] == "an-instance/a-uuid/report.html"
    assert checkpoint_fields(CheckpointSummary("r", JobOutcome.SUCCEEDED))["report"] is None


def test_the_status_tells_from_where_on_the_next_checkpoint_needs_the_log():
    said = CheckpointSummary("r", JobOutcome.SUCCEEDED, ledger_id=12, entry_id=340, restart_ledger_id=10, restart_entry_id=0)
    assert checkpoint_fields(CheckpointSummary.from_json(said.to_json()))["restartLsn"] == {"ledgerId": 10, "entryId": 0}


def test_the_status_tells_nothing_of_a_base_where_there_is_none():
    assert checkpoint_fields(CheckpointSummary("r", JobOutcome.SUCCEEDED))["base"] is None


def test_the_status_tells_which_moment_a_checkpoint_holds():
    said = CheckpointSummary("r", JobOutcome.SUCCEEDED, ledger_id=12, entry_id=340, lsn_timestamp="2026-11-21T13:29:59.912Z")
    fields = checkpoint_fields(CheckpointSummary.from_json(said.to_json()))
    assert (fields["lsn"], fields["lsnTimestamp"]) == ({"ledgerId": 12, "entryId": 340}, "2026-11-21T13:29:59.912Z")
    assert fields["latestTimestamp"] is None, "an image of an earlier version does not tell it"
    later = replace(said, latest_timestamp="2026-11-21T13:30:01.000Z")
    assert checkpoint_fields(CheckpointSummary.from_json(later.to_json()))["latestTimestamp"] == "2026-11-21T13:30:01.000Z"


def unready(reason: Reason, **status: object):
    """The Tablespace with two copies, not Ready for this reason."""
    found = ready(quickstart("Tablespace"), uuid="a-uuid", replicas=COPIES, **status)
    (condition,) = found.status.conditions
    return with_status(
        found, **{**dict(found.status), "conditions": (condition.model_copy(update={"status": "False", "reason": reason.value}),)}
    )


@pytest.mark.parametrize(
    ("situation", "tablespace", "made"),
    [
        ("a node is slow to answer", unready(Reason.REPLICAS_NOT_READY), True),
        ("its leader changes", unready(Reason.NO_LEADER), True),
        ("statements hang on its leader", unready(Reason.STATEMENTS_BLOCKED), True),
        ("it is no more", unready(Reason.DATA_LOST), False),
        ("another one has its name", unready(Reason.NAME_TAKEN), False),
        ("it is being deleted", with_metadata(unready(Reason.NO_LEADER), deletion_timestamp="2026-01-01T00:00:00Z"), False),
        ("its spec has changed since", with_metadata(unready(Reason.NO_LEADER), generation=2), False),
        ("it is being restored", with_spec(unready(Reason.NO_LEADER), bootstrap=Bootstrap(checkpoint=Reference(name="old"))), False),
    ],
)
def test_a_checkpoint_needs_the_log_and_a_follower_and_not_all_copies(situation, tablespace, made):
    plan = plan_checkpoint(replace(SEEN, tablespace=tablespace), "spark:1")
    assert bool(plan.actions) is made, situation
    assert (plan.wait is None) is made


def test_a_checkpoint_that_found_its_manifest_there_says_so():
    assert checkpoint_fields(CheckpointSummary("r", JobOutcome.ALREADY_DONE))["reused"] is True
    assert checkpoint_fields(CheckpointSummary("r", JobOutcome.SUCCEEDED))["reused"] is None


def node_pods(*with_tls: str, secret: str = "db-tls", others: str = "") -> Objects:
    """The database's nodes, of which some serve their HTTP port with a certificate; `others` is the Secret of the rest."""
    owner = {"kind": "StatefulSet", "name": "db-herddb", "uid": "ours", "controller": True}

    def spec(held: str) -> dict[str, Any]:
        arguments = ["--http-certificate", "/tls"] if held else []
        return {"containers": [{"args": arguments}], "volumes": [{"name": "tls", "secret": {"secretName": held}}] if held else []}

    made = {("StatefulSet", "db-herddb"): {"metadata": {"name": "db-herddb", "uid": "ours"}, "spec": {"template": {"spec": spec(secret)}}}}
    for node in ("db-herddb-0", "db-herddb-1"):
        held = secret if node in with_tls else others
        made["Pod", node] = {"metadata": {"name": node, "ownerReferences": [owner]}, "spec": spec(held)}
    return objects(made)


LEADER_AND_FOLLOWER = [f"db-herddb-{number}.db-herddb-nodes.demo.svc:9845" for number in (0, 1)]


@pytest.mark.parametrize(
    ("with_tls", "told"),
    [((), None), (("db-herddb-0",), LEADER_AND_FOLLOWER[0]), (("db-herddb-0", "db-herddb-1"), ",".join(LEADER_AND_FOLLOWER))],
    ids=["none", "one, as they are restarted", "all"],
)
def test_a_checkpoint_speaks_tls_to_those_nodes_whose_pods_say_so(with_tls, told):
    plan = plan_checkpoint(replace(SEEN, nodes=node_pods(*with_tls)), "spark:1")
    given = arguments(plan)
    assert (given[given.index("--nodes-with-tls") + 1] if "--nodes-with-tls" in given else None) == told
    (job,) = (action.manifest for action in plan.actions if isinstance(action, Apply) and action.manifest["kind"] == "Job")
    held = {each["name"]: each.get("valueFrom") for each in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert held.get("HERDDB_AUTHORITIES") == (told and {"secretKeyRef": {"name": "db-tls", "key": "ca.crt"}})


def test_a_checkpoint_asks_no_node_that_it_could_not_verify_and_a_pod_that_is_missing_counts_as_what_comes_back():
    nodes = node_pods("db-herddb-0", "db-herddb-1")
    gone = Objects({of: item for of, item in nodes.items.items() if of != ("Pod", "db-herddb-1")})
    given = arguments(plan_checkpoint(replace(SEEN, nodes=gone), "spark:1"))
    assert given[given.index("--nodes-with-tls") + 1] == ",".join(LEADER_AND_FOLLOWER)
    waits = plan_checkpoint(replace(SEEN, nodes=node_pods("db-herddb-0", others="another")), "spark:1")
    assert waits.actions == ()
    assert waits.wait is not None
    assert "different Secrets (another, db-tls)" in waits.wait.message


def test_a_checkpoint_that_asks_no_node_gets_no_authorities():
    past = with_spec(CHECKPOINT, target=Target(lsn=Lsn(ledger_id=1, entry_id=1)), verify="Reread")
    given = arguments(plan_checkpoint(replace(SEEN, checkpoint=past, nodes=node_pods("db-herddb-0", "db-herddb-1")), "spark:1"))
    assert "--nodes-with-tls" not in given


def test_drivers_are_bound_to_the_role_that_the_setting_names_and_get_no_role_of_their_own():
    def made(plan):
        return [action.manifest for action in plan.actions if action.manifest["apiVersion"].startswith("rbac")]

    executors = {"job": CHECKPOINT.spec.job.model_copy(update={"executors": Executors(instances=2)})}
    audit = with_spec(AUDITED.audit, job=AUDITED.audit.spec.job.model_copy(update={"executors": Executors(instances=2)}))
    for plan in (
        plan_checkpoint(replace(SEEN, checkpoint=with_spec(CHECKPOINT, **executors)), "spark:1", "home-keeper-driver"),
        plan_audit(replace(AUDITED, audit=audit), "spark:1", "home-keeper-driver"),
    ):
        (binding,) = made(plan)
        assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "home-keeper-driver"}
        (driver,) = binding["subjects"]
        assert binding["metadata"]["name"] == f"{driver['name']}-home-keeper-driver"
    assert made(plan_checkpoint(SEEN, "spark:1", "home-keeper-driver")) == [], "without executors"
