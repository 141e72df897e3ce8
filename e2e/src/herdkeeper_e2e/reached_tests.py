"""Prints the unit tests that a change can reach: `python -m herdkeeper_e2e.reached_tests`, nearest first.

A change is the difference from the merge base with main, committed or not. It reaches a test if it touches the test's file, its conftest,
or a module that it imports, directly or not. It also does if it touches another file that the test names, itself or by a folder of its
path.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

REPOSITORY = Path(__file__).resolve().parents[3]
UNIT_TESTS = ("operator/tests/unit", "spark-jobs/tests/unit", "e2e/tests/unit")
IMPORT_ROOTS = ("operator/src", "spark-jobs/src", "e2e/src", "spark-jobs/bench", "spark-jobs/tests/contract", *UNIT_TESTS)
ALL_TESTS = ("pyproject.toml", "requirements.lock", "e2e/bootstrap/build.lock", "conftest.py")
"""A change of these reaches every test."""


def imported_names(source: str) -> Iterator[str]:
    """Yields dotted names that a module imports, and possible names in modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_graph(repository: Path) -> dict[str, frozenset[str]]:
    """Returns for each Python file below the roots its direct imports; a test's conftests are among them."""
    modules: dict[str, str] = {}
    sources: dict[str, str] = {}
    for root in IMPORT_ROOTS:
        for path in sorted((repository / root).rglob("*.py")):
            name = path.relative_to(repository / root).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
            file = path.relative_to(repository).as_posix()
            sources[file] = path.read_text()
            modules[name] = file
    return {
        file: frozenset(modules[name] for name in imported_names(source) if name in modules) | frozenset(_conftests(file, sources))
        for file, source in sources.items()
    }


def _conftests(file: str, sources: Collection[str]) -> Iterator[str]:
    yield from (found for folder in PurePosixPath(file).parents if (found := str(folder / "conftest.py")) in sources and found != file)


def reached(graph: Mapping[str, Iterable[str]], changed: Collection[str], texts: Mapping[str, str]) -> list[str]:
    """Returns the reached test files, fewest imports first. `texts`: the test files' texts."""
    if any(each in ALL_TESTS for each in changed):
        return sorted(texts)
    others = [PurePosixPath(each) for each in changed if each not in graph]
    found = {test: 1 if any(_names(text, path) for path in others) else _imports_away(graph, test, changed) for test, text in texts.items()}
    return sorted((test for test, away in found.items() if away is not None), key=lambda test: (found[test], test))


def _imports_away(graph: Mapping[str, Iterable[str]], start: str, changed: Collection[str]) -> int | None:
    """Returns how many imports lead from a file to the nearest changed one, or None."""
    seen, level, away = {start}, {start}, 0
    while level:
        if not level.isdisjoint(changed):
            return away
        level = {each for file in level for each in graph.get(file, ())} - seen
        seen |= level
        away += 1
    return None


def _names(text: str, path: PurePosixPath) -> bool:
    folders = [str(folder) for folder in path.parents if folder.name]
    return path.name in text or any(f'"{folder}"' in text or f'"{folder}/' in text for folder in folders)


def changes(repository: Path) -> set[str]:
    """Returns files that differ from the merge base with main, or from HEAD without main."""
    base = "HEAD"
    for main in ("main", "origin/main"):
        found = subprocess.run(["git", "merge-base", "HEAD", main], cwd=repository, check=False, capture_output=True, text=True)
        if found.returncode == 0:
            base = found.stdout.strip()
            break
    return {
        *_files(repository, "diff", "--name-only", "--no-renames", "-z", base),
        *_files(repository, "ls-files", "-oz", "--exclude-standard"),
    }


def _files(repository: Path, *arguments: str) -> list[str]:
    answer = subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True, text=True).stdout
    return [each for each in answer.split("\0") if each]


def main() -> None:
    graph = import_graph(REPOSITORY)
    texts = {
        file: (REPOSITORY / file).read_text()
        for file in graph
        if file.startswith(tuple(f"{folder}/" for folder in UNIT_TESTS)) and PurePosixPath(file).name.startswith("test_")
    }
    print("\n".join(reached(graph, changes(REPOSITORY), texts)))


if __name__ == "__main__":
    main()
