"""Which of the long scenarios `make test` runs with this commit: `python -m herdkeeper_e2e.scenario_by_turn [PART OF ITS NAME]` prints it.

Each commit has the next one, so that all of them come by within some forty commits.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
TESTS = Path("e2e/tests")
LEFT_OUT = ("test_storage_9_",)
"""These build the images of earlier versions first, which takes longer than a run has for a scenario: `make e2e-storage`."""
OWN_CLUSTER = "registry"
"""The folder of those that make a cluster of their own: `make e2e-registry`."""
BY_FUNCTION = ("test_storage_1_", "test_storage_2_", "test_storage_3_", "test_storage_10_")
"""Files whose functions need nothing of one another, and take too long together."""


class ChoiceError(ValueError):
    """No scenario, or more than one, has a name like this."""


def turns(repository: Path) -> list[str]:
    """What takes a turn, as pytest is told of it: a file, or a function of a file."""
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
    """The one whose name has this part. Raises ChoiceError."""
    found = [turn for turn in turns if part in turn]
    if len(found) != 1:
        raise ChoiceError(f"SCENARIO is {part!r}: name one of {', '.join(found or turns)}")
    return found[0]


def turn_of_commit(repository: Path) -> int:
    """A number that is one more with each commit; of a shallow clone, whose commits can't be counted, one of the commit's own."""
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
