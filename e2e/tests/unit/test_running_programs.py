"""Scripts and programs are run to their end, and say why they failed; a job that failed does not fail every later demo."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import dataclass, field

import pytest

from herdkeeper_e2e.cluster import CommandError, run
from herdkeeper_e2e.demo import Demo
from herdkeeper_e2e.jobs import JobFailedError
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.stages import Progress
from herdkeeper_e2e.steered_process import acknowledged_in


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.timeout(60)
def test_a_program_that_prints_more_than_a_pipe_holds_comes_to_its_end():
    said: list[str] = []
    assert len(run(python("import sys; print('x' * 300_000); print('done', file=sys.stderr)"), os.environ, said.append)) == 300_001
    assert said == ["done"]


def test_a_program_that_fails_is_named_with_its_code_and_last_words():
    with pytest.raises(CommandError, match=r"ended with code 3: no engine$"):
        run(python("import sys; print('no engine', file=sys.stderr); sys.exit(3)"), os.environ, lambda _: None)


@pytest.mark.parametrize(
    ("line", "acknowledged"),
    [
        ('{"acknowledged": 12, "unknown": 1}\n', 12),
        ('{"acknowledged": 12, "unknown": 1}Connection dropped: outstanding heartbeat\n', None),
        ("Connection dropped: outstanding heartbeat\n", None),
        ("7\n", None),
    ],
)
def test_a_report_into_which_a_warning_ran_is_none(line, acknowledged):
    assert acknowledged_in(line) == acknowledged


@dataclass(frozen=True)
class PlayedKubectl(Kubectl):
    """Resources by `kind/name`, each with a phase. What is applied begins anew, and succeeds unless `fails` names it."""

    phases: dict[str, str] = field(default_factory=dict)
    fails: str = ""
    deleted: list[str] = field(default_factory=list)

    def run(self, *arguments: str, stdin: bytes = b"", timeout_seconds: float = 120.0) -> str:
        match arguments:
            case ("get", kind, name, *_):
                phase = self.phases.get(f"{kind}/{name}")
                return "" if phase is None else json.dumps({"status": {"phase": phase, "message": "disk full"}})
            case ("delete", kind, name, *_):
                self.deleted.append(f"{kind}/{name}")
                del self.phases[f"{kind}/{name}"]
            case ("apply", "-f", file):
                item = "checkpoint/flights-1" if file.endswith("checkpoint.yaml") else "replicationaudit/bk-1"
                self.phases.setdefault(item, "Failed" if item == self.fails else "Succeeded")
        return ""


def jobs(kubectl: PlayedKubectl) -> str:
    output = io.StringIO()
    Demo(Progress(("jobs",), output), kubectl).jobs()
    return output.getvalue()


def test_finished_jobs_are_left_as_they_are():
    kubectl = PlayedKubectl("demo", phases={"checkpoint/flights-1": "Succeeded", "replicationaudit/bk-1": "Succeeded"})
    jobs(kubectl)
    assert kubectl.deleted == []


def test_a_job_that_failed_in_an_earlier_run_is_made_anew_and_the_other_one_left():
    kubectl = PlayedKubectl("demo", phases={"checkpoint/flights-1": "Failed", "replicationaudit/bk-1": "Succeeded"})
    assert "checkpoint flights-1 failed in an earlier run (disk full): it is made anew" in jobs(kubectl)
    assert (kubectl.deleted, kubectl.phases["checkpoint/flights-1"]) == (["checkpoint/flights-1"], "Succeeded")


def test_a_job_that_fails_in_this_run_fails_the_demo_with_its_message():
    with pytest.raises(JobFailedError, match="replicationaudit bk-1 failed: disk full"):
        jobs(PlayedKubectl("demo", fails="replicationaudit/bk-1"))
