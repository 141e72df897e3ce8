"""What Argo CD makes of each state of each kind, by the health check in examples/gitops/argocd; and that Flux makes the same of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa import lua51
from resource_states import KINDS, State, Verdict, states

ARGOCD = Path(__file__).resolve().parents[3] / "examples/gitops/argocd"
SCRIPT = (ARGOCD / "health.lua").read_text()
AGREEMENT = {
    "Current": {"Healthy", "Suspended"},
    "InProgress": {"Progressing"},
    "Failed": {"Degraded", "Suspended"},
    "Terminating": {"Progressing"},
}
KEPT = ("table", "ipairs", "pairs", "type", "tostring", "tonumber", "next", "select", "unpack", "error", "pcall", "assert")
"""What Argo CD lets a script use."""


def health(document: dict[str, Any]) -> dict[str, Any]:
    """As Argo CD runs a script: Lua 5.1 with the global `obj`, and next to no libraries."""
    runtime = lua51.LuaRuntime(unpack_returned_tuples=True)
    names = runtime.globals()
    for name in [name for name in names if name not in KEPT]:
        names[name] = None
    names["obj"] = runtime.table_from(document, recursive=True)
    return dict(runtime.execute(SCRIPT))


@pytest.mark.parametrize("state", tuple(states()), ids=lambda state: f"{state.kind}: {state.name}")
def test_a_state_has_its_health_in_argo_cd(state: State):
    found = health(state.document)
    assert (found["status"], isinstance(found["message"], str)) == (state.verdict.argo, True), state.document["status"]


@pytest.mark.parametrize("verdict", Verdict)
def test_argo_cd_and_kstatus_agree_but_for_what_a_person_stopped(verdict: Verdict):
    """Each state is asserted to be its verdict in both."""
    assert verdict.argo in AGREEMENT[verdict.kstatus]


def test_a_resource_of_an_older_operator_which_has_neither_condition_is_judged_by_ready():
    metadata = {"generation": 1}
    for ready, expected in (("True", "Healthy"), ("False", "Progressing")):
        told = [{"type": "Ready", "status": ready, "reason": "R", "message": "m"}]
        status = {"observedGeneration": 1, "message": "m", "conditions": told}
        assert health({"metadata": metadata, "status": status})["status"] == expected
    assert health({"metadata": metadata})["status"] == "Progressing"


def test_every_kind_gets_the_health_check():
    (generator,) = yaml.safe_load((ARGOCD / "kustomization.yaml").read_text())["configMapGenerator"]
    assert set(generator["files"]) == {f"resource.customizations.health.herdkeeper.io_{kind}=health.lua" for kind in KINDS}
