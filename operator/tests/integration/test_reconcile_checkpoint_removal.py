"""A deleted Checkpoint and its files on a real API server: a Job when nobody needs them, and the resource goes once it has ended."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from kubernetes.dynamic import DynamicClient
from stage import Json, Stage

MANIFEST = f"i/u/manifests/{1:020d}-{2:020d}.json"
SPEC: Json = {
    "tablespaceRef": {"name": "flights"},
    "destination": {"persistentVolumeClaim": {"claimName": "checkpoints"}},
    "deletionPolicy": "Delete",
}
CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "checkpoints"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.fixture
def stage(dynamic: DynamicClient, charted: DynamicClient, namespace: str) -> Stage:
    found = Stage(dynamic, namespace, operator=charted)
    found.of("PersistentVolumeClaim").create(body=CLAIM, namespace=namespace)
    return found


def made(stage: Stage, name: str, **spec: Any) -> None:
    """A Checkpoint that succeeded; its Job is gone by now."""
    stage.declare("Checkpoint", name, {**SPEC, **spec})
    stage.settle("Checkpoint", name)
    stage.set_status("Checkpoint", name, {"phase": "Succeeded", "job": f"{name}-checkpoint", "manifest": MANIFEST, "verified": "re-read"})


def reasons(stage: Stage, name: str) -> set[str]:
    return {str(event["reason"]) for event in stage.events(name)}


def test_the_last_checkpoint_of_a_manifest_takes_the_files_along_and_waits_for_its_job(stage: Stage) -> None:
    made(stage, "first")
    made(stage, "second")
    stage.delete("Checkpoint", "first")
    stage.reconcile("Checkpoint", "first")
    assert stage.live("Checkpoint", "first") is None
    assert "DataKept" in reasons(stage, "first")
    assert stage.live("Job", "first-removal") is None

    stage.delete("Checkpoint", "second")
    stage.reconcile("Checkpoint", "second")
    stage.reconcile("Checkpoint", "second")
    job = stage.found("Job", "second-removal")
    assert MANIFEST in job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert stage.condition("Checkpoint", "second") == ("False", "Deleting")
    assert stage.found("Checkpoint", "second")["status"]["manifest"] == MANIFEST

    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "the volume was full"}
    target = {**failed, "type": "FailureTarget"}
    stage.set_status("Job", "second-removal", {"startTime": "2026-01-01T00:00:00Z", "conditions": [target, failed]})
    stage.reconcile("Checkpoint", "second")
    assert stage.condition("Checkpoint", "second") == ("False", "RemovalFailed")
    stage.patch("Checkpoint", "second", {"spec": {"deletionPolicy": "Retain"}})
    stage.reconcile("Checkpoint", "second")
    assert stage.live("Checkpoint", "second") is None


def test_without_its_volume_there_is_nothing_to_remove(stage: Stage) -> None:
    made(stage, "only")
    stage.delete("PersistentVolumeClaim", "checkpoints")
    stage.delete("Checkpoint", "only")
    stage.reconcile("Checkpoint", "only")
    assert stage.live("Checkpoint", "only") is None
    assert any("nothing to remove" in str(event["message"]) for event in stage.events("only"))


def test_files_in_an_object_store_wait_for_the_secret_that_opens_it(stage: Stage) -> None:
    store = {"uri": "s3://backups/flights", "endpoint": "http://store:9000", "credentialsSecretRef": {"name": "store-keys"}}
    made(stage, "stored", destination={"objectStore": store})
    stage.delete("Checkpoint", "stored")
    stage.reconcile("Checkpoint", "stored")
    assert stage.condition("Checkpoint", "stored") == ("False", "WaitingForSecret")
    assert "store-keys: the Secret does not exist" in stage.found("Checkpoint", "stored")["status"]["message"]
    keys = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-secret"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store-keys"}, "stringData": keys}
    stage.of("Secret").create(body=secret, namespace=stage.namespace)
    stage.reconcile("Checkpoint", "stored")
    pod = stage.found("Job", "stored-removal")["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]
    assert arguments[arguments.index("--destination") + 1] == "s3://backups/flights"
    assert "a-secret" not in str(pod)


def test_an_encrypted_checkpoint_waits_for_its_keys_and_its_removal_for_none(stage: Stage) -> None:
    encryption = {"keysSecretRef": {"name": "backup-keys"}, "currentKey": "2026-11"}
    stage.declare("Checkpoint", "sealed", {**SPEC, "destination": {**SPEC["destination"], "encryption": encryption}})
    stage.settle("Checkpoint", "sealed")
    assert stage.condition("Checkpoint", "sealed") == ("False", "WaitingForSecret")
    message = stage.found("Checkpoint", "sealed")["status"]["message"]
    assert "spec.destination.encryption.keysSecretRef.name is backup-keys: the Secret does not exist; create it with the key" in message
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "backup-keys"}, "stringData": {"2026-11": "a secret"}}
    stage.of("Secret").create(body=secret, namespace=stage.namespace)
    stage.settle("Checkpoint", "sealed")
    message = stage.found("Checkpoint", "sealed")["status"]["message"]
    assert "its entry 2026-11 is not base64; give 32 random bytes" in message
    assert "a secret" not in message
    stage.patch("Secret", "backup-keys", {"stringData": {"2026-11": base64.b64encode(b"k" * 32).decode()}})
    stage.settle("Checkpoint", "sealed")
    assert stage.condition("Checkpoint", "sealed") == ("False", "WaitingForTablespace")

    ended = {"phase": "Succeeded", "job": "sealed-checkpoint", "manifest": MANIFEST, "verified": "re-read", "encryptedWith": "2026-11"}
    stage.set_status("Checkpoint", "sealed", ended)
    stage.delete("Secret", "backup-keys")
    stage.delete("Checkpoint", "sealed")
    stage.reconcile("Checkpoint", "sealed")
    stage.reconcile("Checkpoint", "sealed")
    assert "backup-keys" not in str(stage.found("Job", "sealed-removal")["spec"])
    assert stage.found("Checkpoint", "sealed")["status"]["encryptedWith"] == "2026-11"


def test_with_its_namespace_it_goes_and_leaves_files_that_only_a_new_job_could_remove(stage: Stage) -> None:
    store = {"uri": "s3://backups/flights", "serviceAccountName": "backups"}
    made(stage, "stored", destination={"objectStore": store})
    stage.dynamic.resources.get(api_version="v1", kind="Namespace").delete(name=stage.namespace)
    stage.delete("Checkpoint", "stored")
    for _ in range(3):
        stage.reconcile("Checkpoint", "stored")
    assert stage.live("Checkpoint", "stored") is None
