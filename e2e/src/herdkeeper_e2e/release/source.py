"""What a release is made from: a commit of the repository, its time, and the images that belong together, for one platform or more."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[4]
IMAGES = ("operator", "zookeeper", "bookkeeper", "herddb", "spark")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ReleaseError(ValueError):
    """What was asked for can't be released; the message says what to do."""


@dataclass(frozen=True)
class Build:
    """The images of a version (`0.2.0`) for a platform, by its architecture (`arm64`)."""

    version: str
    architecture: str

    @property
    def platform(self) -> str:
        """As images name it: `linux/arm64`."""
        return f"linux/{self.architecture}"

    @property
    def tag(self) -> str:
        """Of its images in this machine's engine (e2e/images/platform.sh)."""
        return self.version if self.architecture == own_architecture() else f"{self.version}-{self.architecture}"

    def file(self, name: str, suffix: str) -> str:
        """A file of a release that is of an image: `operator-0.2.0-arm64.tar`."""
        return f"{name}-{self.version}-{self.architecture}{suffix}"


def own_architecture() -> str:
    """Of this machine, as images name it."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def builds(version: str, platforms: str) -> tuple[Build, ...]:
    """Those of a release: of `linux/amd64 linux/arm64`, or when nothing is named, of this machine. ReleaseError for any other platform."""
    named = tuple(dict.fromkeys(platforms.split())) or (f"linux/{own_architecture()}",)
    known = {f"linux/{architecture}": architecture for architecture in _ARCHITECTURES.values()}
    if not known.keys() >= set(named):
        raise ReleaseError(f"PLATFORMS is {' '.join(named)!r}: set linux/amd64, linux/arm64 or both")
    return tuple(Build(version, known[name]) for name in named)


def commit(repository: Path) -> str:
    """The id of the commit that is checked out."""
    return output("git", "rev-parse", "HEAD", folder=repository).strip()


def commit_epoch(repository: Path) -> int:
    """When the checked-out commit was made, in seconds since 1970; SOURCE_DATE_EPOCH where that is set."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or output("git", "log", "-1", "--format=%ct", folder=repository))


def uncommitted(repository: Path) -> tuple[str, ...]:
    """Files of the checkout that are not as committed: a release has none of what they say."""
    return tuple(line[3:] for line in output("git", "status", "--porcelain", folder=repository).splitlines())


def output(*command: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Standard output of a program. ReleaseError with what it said when it fails."""
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise ReleaseError(f"{' '.join(command[:3])} failed: {answer.stderr.strip()[-2000:]}")
    return answer.stdout
