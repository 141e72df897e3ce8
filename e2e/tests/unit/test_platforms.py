"""Images for another platform than the machine's: what they are called, what they stand on, and what has to run them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from played_programs import PlayedPrograms

from herdkeeper_e2e.release.build import rename
from herdkeeper_e2e.release.source import Build, ReleaseError, builds, own_architecture

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
OWN = own_architecture()
(OTHER,) = MACHINES.keys() - {OWN}
REGISTERED = "enabled\ninterpreter /usr/bin/qemu\nflags: PF\n"
ENGINE = """
have=$(dirname "$0")/../have
case "$*" in
  "image inspect -f "*) echo "sha256:$(echo "${@: -1}" | sha256sum)" ;;
  "image inspect "*) grep -qxF "${@: -1}" "$have" 2>/dev/null ;;
  "tag "*) echo "$3" >> "$have" ;;
  "build "*) case "$*" in *" -f - "*) grep ^FROM | sed 's/^/docker stands on /' >> "$(dirname "$0")/../calls" ;; esac ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> PlayedPrograms:
    programs = PlayedPrograms(tmp_path)
    programs.play("docker", ENGINE)
    programs.play("id", "echo 1000")  # who may not install anything
    return programs


def registered(folder: Path, text: str = REGISTERED) -> str:
    """The folder in which the kernel shows what it runs by other programs."""
    (folder / "binfmt").mkdir()
    (folder / "binfmt" / f"qemu-{MACHINES[OTHER]}").write_text(text)
    return str(folder / "binfmt")


def test_a_release_is_for_this_machine_unless_platforms_are_named():
    assert builds("0.2.0", "") == (Build("0.2.0", OWN),)
    assert builds("0.2.0", "linux/amd64 linux/arm64 linux/amd64") == (Build("0.2.0", "amd64"), Build("0.2.0", "arm64"))


@pytest.mark.parametrize("platforms", ["arm64", "linux/arm64,linux/amd64", "linux/amd64 linux/riscv64"])
def test_a_platform_without_images_is_refused(platforms):
    with pytest.raises(ReleaseError, match="PLATFORMS is"):
        builds("0.2.0", platforms)


def test_files_of_all_platforms_and_images_of_another_one_are_named_by_it():
    assert [Build("0.2.0", each).file("operator", ".tar") for each in MACHINES] == ["operator-0.2.0-amd64.tar", "operator-0.2.0-arm64.tar"]
    assert Build("0.2.0", OWN).tag == "0.2.0"
    assert Build("0.2.0", OTHER).tag == f"0.2.0-{OTHER}"


def test_an_archive_is_loaded_under_the_version_whatever_its_platform(tmp_path):
    build = Build("0.2.0", OTHER)
    layer = b"as it was: " + build.tag.encode()
    files = {
        "a/layer.tar": layer,
        "manifest.json": json.dumps([{"RepoTags": [f"herdkeeper/operator:{build.tag}"], "Layers": ["a/layer.tar"]}]).encode(),
        "repositories": json.dumps({"herdkeeper/operator": {build.tag: "a"}}).encode(),
    }
    with tarfile.open(tmp_path / "saved", "w") as saved:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            saved.addfile(entry, io.BytesIO(content))
    rename(tmp_path / "saved", tmp_path / "operator.tar", build)
    with tarfile.open(tmp_path / "operator.tar") as archive:
        held = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    assert held.keys() == files.keys()
    assert held["a/layer.tar"] == layer
    assert json.loads(held["manifest.json"]) == [{"RepoTags": ["herdkeeper/operator:0.2.0"], "Layers": ["a/layer.tar"]}]
    assert json.loads(held["repositories"]) == {"herdkeeper/operator": {"0.2.0": "a"}}


def test_everything_below_an_image_of_another_platform_is_of_that_platform(machine):
    (machine.folder / "cache/stage/zookeeper/lib").mkdir(parents=True)
    settings = {"HERDKEEPER_PLATFORM": f"linux/{OTHER}", "HERDKEEPER_IMAGE_TAG": "1", "HOME": str(machine.folder)}
    built = machine.run("e2e/images/build.sh", "zookeeper", HERDKEEPER_BINFMT=registered(machine.folder), **settings)
    assert built.returncode == 0, built.stderr
    calls = [call for call in machine.calls() if call.startswith("docker ")]
    assert [call for call in calls if " stands on " in call] == [
        f"docker stands on FROM herdkeeper/debian:local-{OTHER}",
        f"docker stands on FROM herdkeeper/java:local-{OTHER}",
    ]
    made = [call.split()[4] for call in calls if call.startswith("docker build -q -t herdkeeper/") and "/builder:" not in call]
    assert made == [f"herdkeeper/java:local-{OTHER}", f"herdkeeper/zookeeper:1-{OTHER}"]
    (other, own) = [call for call in calls if call.startswith("docker pull ")]  # the builder's own is this machine's
    assert f"--platform linux/{OTHER}" in other
    assert "--platform" not in own


def test_a_platform_that_is_none_is_named_with_those_that_are(machine):
    made = machine.run("e2e/images/base.sh", HERDKEEPER_PLATFORM="arm64")
    assert made.returncode == 1
    assert "HERDKEEPER_PLATFORM is 'arm64': set linux/amd64 or linux/arm64" in made.stderr
    assert machine.calls() == []


def test_a_kernel_that_runs_the_other_platform_in_containers_needs_nothing(machine):
    assert machine.run("e2e/bootstrap/emulation.sh", MACHINES[OTHER], HERDKEEPER_BINFMT=registered(machine.folder)).returncode == 0


@pytest.mark.parametrize("text", [None, "disabled\nflags: PF\n", "enabled\nflags: P\n"])
def test_without_emulation_in_containers_nothing_is_built_and_the_fix_is_named(machine, text):
    formats = registered(machine.folder, text) if text else str(machine.folder / "nothing")
    settings = {"HERDKEEPER_PLATFORM": f"linux/{OTHER}", "HERDKEEPER_BINFMT": formats}
    built = machine.run("e2e/images/build.sh", "zookeeper", **settings)
    assert built.returncode == 1
    assert "install qemu-user-static and binfmt-support" in built.stderr
    assert [call for call in machine.calls() if call.startswith("docker")] == []
