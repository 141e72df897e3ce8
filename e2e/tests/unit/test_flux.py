"""What a Kustomization of Flux tells of a commit, and what is left of Flux in a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from herdkeeper_e2e import flux
from herdkeeper_e2e.flux import HealthCheckError, ready
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.waiting import Pending

NEW = "c0ffee"


def kustomization(status: str, reason: str, *, applied: str | None = None, attempted: str = NEW):
    revisions = {"lastAttemptedRevision": f"main@sha1:{attempted}"} | ({"lastAppliedRevision": f"main@sha1:{applied}"} if applied else {})
    told = {"type": "Ready", "status": status, "reason": reason, "message": "of bk"}
    return {"metadata": {"name": "database"}, "status": {"conditions": [told], **revisions}}


def test_one_that_is_ready_at_the_commit_is_ready():
    assert ready(kustomization("True", "ReconciliationSucceeded", applied=NEW), NEW) is True


@pytest.mark.parametrize("applied", [None, "an-earlier-one"])
def test_one_that_is_ready_at_another_commit_or_has_not_written_at_which_is_waited_for(applied):
    assert isinstance(ready(kustomization("True", "ReconciliationSucceeded", applied=applied), NEW), Pending)


def test_a_failure_ends_the_waiting_only_at_the_commit_that_failed():
    with pytest.raises(HealthCheckError, match="of bk"):
        ready(kustomization("False", "HealthCheckFailed"), NEW)
    assert isinstance(ready(kustomization("False", "HealthCheckFailed", attempted="an-earlier-one"), NEW), Pending)


def test_a_dependency_that_is_not_ready_is_waited_for():
    assert ready(kustomization("False", "DependencyNotReady"), NEW) == Pending("database: DependencyNotReady: of bk")


def test_after_a_failure_neither_its_resources_nor_their_definitions_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = tmp_path / "asked"
    for program, line in (("kubectl", f'echo "$@" >>{asked}'), ("controller", "exec sleep 600")):
        (tmp_path / program).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setattr(flux, "go_program", lambda _: tmp_path / "controller")
    monkeypatch.setattr(flux, "module_folder", lambda _, module: tmp_path / module)
    kubectl = Kubectl("default", {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    with pytest.raises(HealthCheckError), flux.running(kubectl, tmp_path):
        raise HealthCheckError
    *_, resources, definitions, namespace = asked.read_text().splitlines()
    assert resources == f"--namespace {flux.NAMESPACE} delete helmreleases,kustomizations,gitrepositories --all"
    assert definitions.startswith("--namespace default delete -f ")
    assert namespace == f"--namespace default delete namespace {flux.NAMESPACE}"
