"""What kube-score finds in the chart and in the objects that the operator makes: nothing that is not explained here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from herdkeeper_e2e.control_plane import REPOSITORY, rendered
from herdkeeper_e2e.go_module import go_program

GOLDEN = REPOSITORY / "operator/tests/unit/golden"
SOUND = 10
"""The grade of an object in which a check found nothing."""
SAME_FOR_ALL = {
    ("container-resources", "CPU limit is not set"): "a limit would stop a leader amid writes to its log; requests share the CPU fairly",
    (
        "container-image-pull-policy",
        "ImagePullPolicy is not set to Always",
    ): "a release's tag never moves, and a restart must not need a registry",
    (
        "container-ephemeral-storage-request-and-limit",
        "Ephemeral Storage limit is not set",
    ): "the root is read-only, and /tmp has its own limit",
    ("container-ephemeral-storage-request-and-limit", "Ephemeral Storage request is not set"): "as above: almost nothing is written there",
}
CHART = SAME_FOR_ALL | {
    (
        "container-security-context-user-group-id",
        "The container is running with a low user ID",
    ): "none is set: OpenShift gives one, else the image's",
    ("container-security-context-user-group-id", "The container running with a low group ID"): "as above",
    ("deployment-replicas", "Deployment few replicas"): "one acts at a time; `replicas: 2` adds one that waits",
    (
        "pod-networkpolicy",
        "The pod does not have a matching egress NetworkPolicy",
    ): "its policy guards its port; it connects to the API server, and to ensembles anywhere",
}
MADE_BY_THE_OPERATOR = SAME_FOR_ALL | {
    (
        "pod-networkpolicy",
        "The pod does not have a matching NetworkPolicy",
    ): "policies are apart: test_network_access evaluates all pairs of pods",
    (
        "pod-networkpolicy",
        "The pod does not have a matching egress NetworkPolicy",
    ): "they guard ports; where a server may go is its owner's to say",
    ("networkpolicy-targets-pod", "The NetworkPolicys selector doesn't match any pods"): "as above: their pods are in another file",
    ("service-targets-pod", "The services selector does not match any pods"): "as above: the SQL nodes of a leader's Service",
    ("pod-probes-identical", "Container has the same readiness and liveness probe"): "nobody connects to autorecovery: one answer says all",
}
"""By check and what it says, why it is so."""


def found(objects: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """What it finds in objects that are applied together, as check and summary."""
    command = [str(go_program("kube-score")), "score", "--output-format", "json", "-"]
    answer = subprocess.run(command, input=yaml.safe_dump_all(objects), capture_output=True, text=True, check=False)
    for scored in json.loads(answer.stdout) or ():  # null: no kind that it knows
        for check in scored["checks"]:
            if not check["skipped"] and check["grade"] < SOUND:
                yield from ((check["check"]["id"], comment["summary"]) for comment in check["comments"])


def test_what_it_finds_in_the_chart_is_explained() -> None:
    assert set(found(rendered())) == CHART.keys()


def test_what_it_finds_in_the_operators_objects_is_explained() -> None:
    golden = sorted(GOLDEN.glob("*.yaml"))
    findings = {finding for file in golden for finding in found(yaml.safe_load_all(file.read_text()))}
    assert findings == MADE_BY_THE_OPERATOR.keys()
