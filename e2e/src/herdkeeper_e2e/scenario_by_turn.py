"""Prints the long scenario that `make test` runs with this commit: `python -m herdkeeper_e2e.scenario_by_turn [PART OF ITS NAME]`.

Each commit has the next one, so all of them run within some forty commits.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
TESTS = Path("e2e/tests")
LEFT_OUT = ("test_storage_9_", "test_secure_2_", "test_secure_3_", "test_secure_4_")
"""These take longer than a run has for a scenario. One builds the images of earlier versions (`make e2e-storage`). One waits for three
steps of ten minutes or more, and one rolls a stack several times (`make e2e-secure`). One builds cert-manager (`make e2e-cert-manager`)."""
WITHOUT_TURN = ("fields", "gitops", "images", "monitoring", "registry", "upgrade")
"""Folders of scenarios that first build large programs (`make e2e-gitops`, `make e2e-monitoring`), have their own cluster (`make
e2e-registry`, `make e2e-upgrade`), have none (`make e2e-images`), or take an hour (`make e2e-fields`)."""
BY_FUNCTION = ("test_attacks_1_", "test_sql_3_", "test_storage_1_", "test_storage_2_", "test_storage_3_", "test_storage_10_")
"""Files with independent functions that together take too long."""


class ChoiceError(ValueError):
    """No scenario, or more than one, has a name like this."""


def turns(repository: Path) -> list[str]:
    """Returns the turns as pytest arguments: a file, or a function of a file."""
    folders = ("attacks", "schedules", "secure", "sql", "storage", "tutorials")
    return [turn for folder in folders for turn in _of_folder(repository, TESTS / folder)]


def _of_folder(repository: Path, folder: Path) -> Iterator[str]:
    for path in sorted((repository / folder).glob("test_*.py")):
        if path.name.startswith(BY_FUNCTION):
            lines = path.read_text().splitlines()
            yield from (f"{folder / path.name}::{line[4 : line.index('(')]}" for line in lines if line.startswith("def test_"))
        elif not path.name.startswith(LEFT_OUT):
            yield str(folder / path.name)


def named(turns: Sequence[str], part: str) -> str:
    """Returns the turn whose name has this part. Raises ChoiceError."""
    found = [turn for turn in turns if part in turn]
    if len(found) != 1:
        raise ChoiceError(f"SCENARIO is {part!r}: name one of {', '.join(found or turns)}")
    return found[0]


def turn_of_commit(repository: Path) -> int:
    """Returns a number that increases with each commit; in a shallow clone, one derived from the commit."""
    if _git(repository, "rev-parse", "--is-shallow-repository") == "true":
        return int(_git(repository, "rev-parse", "HEAD"), 16)
    return int(_git(repository, "rev-list", "--count", "HEAD"))


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    all_turns = turns(REPOSITORY)
    try:
        print(named(all_turns, sys.argv[1]) if len(sys.argv) > 1 else all_turns[turn_of_commit(REPOSITORY) % len(all_turns)])
    except ChoiceError as error:
        sys.exit(str(error))
