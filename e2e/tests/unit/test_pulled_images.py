"""Which names are pulled for the test cluster, and what becomes of what was pulled."""

from __future__ import annotations

import re

import pytest
from played_programs import PlayedPrograms

ENGINE = """
have=$(dirname "$0")/../have
case "$*" in
  "image inspect -f "*) grep -qxF "${@: -1}" "$have" 2>/dev/null && echo "sha256:$(echo "${@: -1}" | sha256sum)" ;;
  "image inspect "*) grep -qxF "${@: -1}" "$have" 2>/dev/null ;;
  "pull -q "*) [ ! -e "$(dirname "$0")/../silent" ] && echo "$3" >> "$have" ;;
  "tag "*) echo "$3" >> "$have" ;;
  "build -q -t "*) echo "$4" >> "$have" ;;
esac
"""
OWN = "mirror.example.com/node:v1.34.9"
KINDS = "kindest/node:v1.34.0@sha256:"


@pytest.fixture
def machine(tmp_path):
    programs = PlayedPrograms(tmp_path)
    programs.play("docker", ENGINE)
    return programs


def pulled(machine: PlayedPrograms) -> list[str]:
    return [call.removeprefix("docker pull -q ") for call in machine.calls() if call.startswith("docker pull")]


def test_the_base_of_all_images_is_pulled_by_its_digest(machine):
    assert machine.run("e2e/images/base.sh").returncode == 0
    (name,) = pulled(machine)
    assert re.fullmatch(r"debian@sha256:[0-9a-f]{64}", name)
    assert machine.calls()[-1].endswith(" herdkeeper/debian:local")


def test_the_base_of_all_images_comes_from_a_mirror_under_the_same_digest(machine):
    made = machine.run("e2e/images/base.sh", HERDKEEPER_DOCKER_HUB="mirror.example.com/hub")
    assert made.returncode == 0, made.stderr
    (name,) = pulled(machine)
    assert name.startswith("mirror.example.com/hub/library/debian@sha256:")


def test_the_base_of_all_images_is_pulled_once(machine):
    machine.run("e2e/images/base.sh")
    machine.run("e2e/images/base.sh")
    assert len(pulled(machine)) == 1
    assert machine.calls()[-1].endswith(" herdkeeper/debian:local")


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"HERDKEEPER_NODE_IMAGE": "pull"}, KINDS),
        ({"HERDKEEPER_NODE_IMAGE": "pull", "HERDKEEPER_DOCKER_HUB": "mirror.example.com/hub"}, f"mirror.example.com/hub/{KINDS}"),
        ({"HERDKEEPER_NODE_IMAGE": OWN, "HERDKEEPER_DOCKER_HUB": "mirror.example.com/hub"}, OWN),
    ],
)
def test_the_node_image_is_pulled_by_the_name_that_was_chosen(machine, settings, name):
    made = machine.run("e2e/kind/node-image.sh", **settings)
    assert made.returncode == 0, made.stderr
    assert [each.startswith(name) for each in pulled(machine)] == [True]
    mode, image = made.stdout.split()
    assert mode == "pulled"
    assert [call for call in machine.calls() if call.startswith(f"docker build -q -t {image} --build-arg NODE={name}")]


def test_another_image_under_the_same_name_makes_another_node_image(machine):
    first, second = (machine.run("e2e/kind/node-image.sh", HERDKEEPER_NODE_IMAGE=name).stdout for name in (OWN, f"{OWN}-next"))
    assert first != second


def test_a_node_image_that_can_t_be_pulled_is_named(machine):
    (machine.folder / "silent").touch()
    made = machine.run("e2e/kind/node-image.sh", HERDKEEPER_NODE_IMAGE=OWN)
    assert made.returncode == 1
    assert made.stdout == ""
    assert f"{OWN} could not be pulled" in made.stderr
