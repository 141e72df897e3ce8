"""How a release is pushed: which names images and chart get, and what is refused before anything is pushed."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from played_programs import PlayedPrograms

from herdkeeper_e2e.release.source import IMAGES, Build

DIGEST = f"sha256:{'0' * 64}"
INDEX = f"sha256:{'1' * 64}"


@dataclass
class Machine:
    """One whose engine and Helm write down what they are told, and log in as they are."""

    folder: Path
    engine: str = "exit 0"

    def push(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inspected = f'echo "${{@: -1}}" | sed "s/:[^:/]*$/@{DIGEST}/"'
        programs = PlayedPrograms(self.folder)
        answers = {"image inspect": inspected, "manifest push": f"echo {INDEX}", "info ": self.engine}
        programs.play("docker", f'case "$1 $2" in {" ".join(f"{asked!r}) {answer} ;;" for asked, answer in answers.items())} esac')
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


def test_images_of_both_platforms_are_pushed_under_one_name(machine):
    builds = (Build("0.2.0", "amd64"), Build("0.2.0", "arm64"))
    for build in builds:
        (machine.folder / build.file("operator", ".tar")).touch()
    pushed = machine.push("0.2.0", "127.0.0.1:5000/team")
    assert pushed.returncode == 0, pushed.stderr
    calls = machine.calls()
    for name in IMAGES:
        image = f"127.0.0.1:5000/team/herdkeeper/{name}:0.2.0"
        steps = [step for build in builds for step in _pushed_as(f"herdkeeper/{name}:{build.tag}", f"{image}-{build.architecture}")]
        steps.append(f"docker manifest create --insecure {image} {image}-amd64 {image}-arm64")
        steps.append(f"docker manifest push --insecure --purge {image}")
        assert [call for call in calls if image in call and " rm " not in call] == steps
    values = yaml.safe_load((machine.folder / "digests.yaml").read_text())
    assert values["images"]["digests"] == dict.fromkeys(IMAGES, INDEX)


def _pushed_as(image: str, name: str) -> list[str]:
    return [f"docker tag {image} {name}", f"docker push -q {name}"]


def test_images_of_one_platform_are_pushed_without_an_index(machine):
    build = Build("0.2.0", "arm64")
    (machine.folder / build.file("operator", ".tar")).touch()
    pushed = machine.push("0.2.0", "example.com")
    assert pushed.returncode == 0, pushed.stderr
    assert f"docker tag herdkeeper/spark:{build.tag} example.com/herdkeeper/spark:0.2.0" in machine.calls()
    assert [call for call in machine.calls() if "manifest" in call] == []


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
