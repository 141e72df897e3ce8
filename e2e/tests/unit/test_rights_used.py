"""What audit logs say of the operator's rights: which were used, which were not, and what was asked for without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from herdkeeper_e2e import audit_log, rights_used
from herdkeeper_e2e.audit_log import distinct, keep, requests_of
from herdkeeper_e2e.control_plane import REPOSITORY
from herdkeeper_e2e.rights_used import UNSEEN, Right, compared, granted, told

SAMPLE = Path(__file__).parent / "audit-sample.jsonl"
"""Recorded from a kube-apiserver 1.34 of the integration tests, whose operator had no right to read nodes."""


def sample() -> list[bytes]:
    return SAMPLE.read_bytes().splitlines(keepends=True)


CONFIG = [Right("", "configmaps", verb) for verb in ("create", "patch")]
USED = frozenset(
    {*CONFIG, Right("", "pods", "list"), Right("", "pods", "watch"), Right("herdkeeper.io", "zookeeperclusters/status", "patch")}
)
DELETE = Right("", "configmaps", "delete")
NODES = Right("", "nodes", "get")


def test_what_was_used_what_was_not_and_what_was_forbidden_is_told_apart() -> None:
    comparison = compared(USED | {DELETE, NODES}, requests_of(sample()))
    assert comparison.unused == (DELETE, NODES)
    assert comparison.forbidden == (NODES,)
    assert told(comparison) == ["not used: delete configmaps (core)", "not used: get nodes (core)", "forbidden: get nodes (core)"]


def test_an_apply_that_makes_its_object_uses_the_right_to_create_and_no_other_apply_does() -> None:
    changes = [line for line in sample() if b'"code":201' not in line]
    assert compared(USED, requests_of(changes)).unused == (CONFIG[0],)


def test_a_right_that_no_log_shows_is_told_with_the_test_that_fails_without() -> None:
    comparison = compared(USED | {DELETE}, requests_of(sample()), {DELETE: "that_test"})
    assert (comparison.unused, comparison.unseen) == ((), (DELETE,))
    assert told(comparison, {DELETE: "that_test"})[0] == "not seen: delete configmaps (core); without it this fails: that_test"


def test_the_tests_that_fail_without_a_right_are_there() -> None:
    for named in UNSEEN.values():
        file, _, test = named.partition("::")
        assert f"\ndef {test}(" in (REPOSITORY / file).read_text(), named


def test_requests_of_others_say_nothing_of_the_operator_s_rights() -> None:
    events = [json.loads(line) for line in sample()]
    strangers = [{**event, "user": {"username": "system:serviceaccount:herdkeeper-system:default"}} for event in events]
    assert list(requests_of(json.dumps(event).encode() for event in strangers)) == []


def role(kind: str, name: str, namespace: str | None, *rules: tuple[str, str, str]) -> dict[str, object]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    given = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]} for group, resource, verb in rules]
    return {"kind": kind, "metadata": metadata, "rules": given}


def binding(of: str, namespace: str | None, account: str = "herdkeeper") -> dict[str, object]:
    kind, _, name = of.partition("/")
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, "namespace": namespace} if namespace else {"name": name},
        "roleRef": {"kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "herdkeeper-system"}],
    }


def test_the_operator_is_granted_what_is_bound_to_its_account_and_nothing_else() -> None:
    objects = [
        role("ClusterRole", "herdkeeper", None, ("", "nodes", "get")),
        role("ClusterRole", "driver", None, ("", "pods", "create")),
        role("Role", "herdkeeper", "apps", ("", "secrets", "get")),
        role("Role", "leadership", "herdkeeper-system", ("coordination.k8s.io", "leases", "update")),
        role("ClusterRole", "of-another", None, ("", "pods/exec", "create")),
        binding("ClusterRole/herdkeeper", None),
        binding("Role/herdkeeper", "apps"),
        binding("Role/leadership", "herdkeeper-system"),
        binding("ClusterRole/of-another", None, "another"),
    ]
    assert granted(objects) == {NODES, Right("", "secrets", "get"), Right("coordination.k8s.io", "leases", "update")}


def test_what_is_kept_of_a_log_is_the_first_request_of_each_kind_since_the_run_began() -> None:
    lines = sample()
    first = next(requests_of(lines)).at
    assert list(distinct([*lines, *lines, b'{"kind":"Ev'])) == list(distinct(lines))
    assert [request.at for request in requests_of(distinct(lines, first + 3600))] == []
    assert compared(USED, requests_of(distinct(lines))) == compared(USED, requests_of(lines))


def test_logs_of_several_runs_are_kept_and_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(audit_log.CACHE, str(tmp_path))
    monkeypatch.setattr(rights_used, "charts_rights", lambda: USED)
    lines = sample()
    files = [keep(part, f"part-{number}") for number, part in enumerate((lines[:3], lines[3:], []))]
    assert files[2] is None
    assert sorted((tmp_path / "audit-logs").iterdir()) == files[:2]
    assert rights_used.main([file for file in files[:1] if file]) == 1
    assert rights_used.main([file for file in files if file]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "5 of 5 rights are used"


def test_only_the_newest_logs_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(audit_log.CACHE, str(tmp_path))
    monkeypatch.setattr(audit_log, "MOST_KEPT", 1)
    keep(sample(), "a")
    newest = keep(sample(), "b")
    assert list((tmp_path / "audit-logs").iterdir()) == [newest]


def test_without_any_log_no_right_is_called_used(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(rights_used, "charts_rights", lambda: USED)
    assert rights_used.main([]) == 1
    assert "no audit log is kept yet" in capsys.readouterr().out
