"""What is installed is what the lock files name, by hash, and they name what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from herdkeeper_e2e.release.source import REPOSITORY

LOCK = "requirements.lock"
BUILD_LOCK = "e2e/bootstrap/build.lock"
IMAGES = ("operator", "spark")
_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+))?(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)


@dataclass(frozen=True)
class Pin:
    """A version, where it is wanted, and the hashes of its files."""

    version: str
    marker: str
    hashes: frozenset[str]


def pins(path: str) -> dict[str, list[Pin]]:
    """Those of a lock file by name: more than one where Pythons need different versions. Nothing else may stand there."""
    text = re.sub(r"^#.*\n", "", (REPOSITORY / path).read_text(), flags=re.MULTILINE)
    assert _PIN.sub("", text) == "", f"{path}: a line that is no version with hashes"
    named: dict[str, list[Pin]] = defaultdict(list)
    for found in _PIN.finditer(text):
        hashes = frozenset(found["hashes"].split()) - {"\\"}
        named[canonicalize_name(found["name"])].append(Pin(found["version"], (found["marker"] or "").strip(), hashes))
    return dict(named)


def of_version(held: list[Pin]) -> dict[str, frozenset[str]]:
    """The hashes of each version. Where it is wanted may differ."""
    return {pin.version: pin.hashes for pin in held}


def asked_for(*extras: str) -> list[Requirement]:
    """What pyproject.toml asks for, but for the project's own packages."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [line for extra in extras for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in lines if not line.startswith("herdkeeper-")]


@pytest.mark.parametrize(
    ("path", "extras"),
    [(LOCK, ("operator", "spark", "dev", "docs")), *((f"images/{image}/{LOCK}", (image,)) for image in IMAGES)],
)
def test_a_lock_file_has_what_pyproject_asks_for(path, extras):
    locked = pins(path)
    for requirement in asked_for(*extras):
        versions = [pin.version for pin in locked.get(canonicalize_name(requirement.name), ())]
        assert versions, f"{path} lacks {requirement}: run make lock"
        fitting = [version for version in versions if requirement.specifier.contains(version)]
        assert fitting == versions, f"{path}: {requirement}: run make lock"


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_holds_the_versions_that_were_tested(image):
    tested = pins(LOCK)
    for name, held in pins(f"images/{image}/{LOCK}").items():
        assert of_version(held) == of_version(tested[name]), f"{image}: {name}: run make lock"


def test_what_builds_the_wheels_is_locked():
    locked = pins(BUILD_LOCK)
    for project in ("pyproject.toml", "sql/pyproject.toml"):
        for line in tomllib.loads((REPOSITORY / project).read_text())["build-system"]["requires"]:
            requirement = Requirement(line)
            (pin,) = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pin.version), f"{project}: run make lock"
    assert {"pip", "setuptools"} <= locked.keys()


def test_builder_and_tests_share_what_both_install():
    tested, builder = pins(LOCK), pins(BUILD_LOCK)
    for name in tested.keys() & builder.keys():
        assert of_version(builder[name]) == of_version(tested[name]), f"{name}: run make lock"


def test_every_marker_of_a_lock_file_can_be_read():
    markers = [pin.marker for path in (LOCK, BUILD_LOCK) for held in pins(path).values() for pin in held if pin.marker]
    assert [Marker(marker) for marker in markers]


def test_nothing_is_installed_without_a_hash():
    scripts = [path for folder in ("e2e", "images", ".ci") for path in (REPOSITORY / folder).rglob("*") if path.suffix in {"", ".sh"}]
    calls = [
        (path.relative_to(REPOSITORY).as_posix(), line.strip())
        for path in scripts
        if path.is_file()
        for line in path.read_text(errors="replace").splitlines()
        if re.search(r"pip3?\"? install ", line) and not line.lstrip().startswith("#")
    ]
    assert calls
    unchecked = [(path, line) for path, line in calls if "--require-hashes" not in line]
    # uv only writes lock files, whose hashes a person reviews; the project's own folders have no hash
    assert sorted(path for path, _ in unchecked) == ["e2e/bootstrap/lock.sh", "e2e/images/stage-python.sh"]
