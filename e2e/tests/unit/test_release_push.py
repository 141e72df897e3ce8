"""How a release is pushed: which names images and chart get, and what is refused before anything is pushed."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from played_programs import PlayedPrograms

from herdkeeper_e2e.release.source import IMAGES

DIGEST = f"sha256:{'0' * 64}"


@dataclass
class Machine:
    """One whose engine and Helm write down what they are told, and log in as they are."""

    folder: Path
    engine: str = "exit 0"

    def push(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inspected = f'echo "${{@: -1}}" | sed "s/:[^:/]*$/@{DIGEST}/"'
        programs = PlayedPrograms(self.folder)
        programs.play("docker", f'case "$1 $2" in "image inspect") {inspected} ;; "info "*) {self.engine} ;; esac')
        programs.play("helm", "")
        told = {"HELM": str(self.folder / "bin/helm"), "HERDKEEPER_DIST": str(self.folder), **environment}
        return programs.run("e2e/images/push.sh", *arguments, **told)

    def calls(self) -> list[str]:
        return PlayedPrograms(self.folder).calls()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "herdkeeper-0.2.0.tgz").touch()
    return Machine(tmp_path)


def test_images_and_chart_are_pushed_and_their_digests_are_values_of_the_chart(machine):
    pushed = machine.push("0.2.0", "example.com/team")
    assert pushed.returncode == 0, pushed.stderr
    calls = machine.calls()
    for name in IMAGES:
        image = f"example.com/team/herdkeeper/{name}:0.2.0"
        assert calls.index(f"docker tag herdkeeper/{name}:0.2.0 {image}") < calls.index(f"docker push -q {image}")
    assert calls[-1] == f"helm push {machine.folder}/herdkeeper-0.2.0.tgz oci://example.com/team/herdkeeper/charts"
    values = yaml.safe_load((machine.folder / "digests.yaml").read_text())
    assert values == {"images": {"registry": "example.com/team", "digests": dict.fromkeys(IMAGES, DIGEST)}}


def test_it_logs_in_first_where_a_user_is_given(machine):
    pushed = machine.push("0.2.0", "example.com:5000/team", REGISTRY_USER="me", REGISTRY_PASSWORD="secret")
    assert pushed.returncode == 0, pushed.stderr
    logins = [call for call in machine.calls() if "login" in call]
    assert logins == [
        "docker login --username me --password-stdin example.com:5000",
        "helm registry login --username me --password-stdin example.com:5000",
    ]


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [(("", ""), "VERSION is empty"), (("0.2.0", ""), "REGISTRY is empty"), (("0.3.0", "example.com"), "run make release VERSION=0.3.0")],
)
def test_what_is_missing_is_named_and_nothing_is_pushed(machine, arguments, fix):
    pushed = machine.push(*arguments)
    assert pushed.returncode == 1
    assert fix in pushed.stderr
    assert machine.calls() == []


def test_without_an_engine_nothing_is_pushed(tmp_path, machine):
    pushed = Machine(tmp_path, engine="exit 1").push("0.2.0", "example.com")
    assert pushed.returncode == 1
    assert "no container engine answers" in pushed.stderr
