"""What a release is made from: a commit of the repository, its time, and the images that belong together."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[4]
IMAGES = ("operator", "zookeeper", "bookkeeper", "herddb", "spark")


class ReleaseError(ValueError):
    """What was asked for can't be released; the message says what to do."""


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
