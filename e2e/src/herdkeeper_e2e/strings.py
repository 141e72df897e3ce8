"""Lists each string that a user may see, from the source of operator and jobs: messages, refusals, descriptions, what the plugin prints.

What has three words or more counts, docstrings apart. What is put in is shown as code in braces. Run by `make strings`.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator

from herdkeeper_e2e.control_plane import REPOSITORY

SOURCES = ("operator/src", "spark-jobs/src")
_PUT_IN = re.compile(r"\{[^{}]*\}")


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yields line and text of each string of a module that has three words or more."""
    tree = ast.parse(source)
    yield from _within(tree, {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)})


def _within(node: ast.AST, skipped: set[int]) -> Iterator[tuple[int, str]]:
    if id(node) in skipped:
        return
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _text(node)
        if len(_PUT_IN.sub("", text).split()) >= 3:
            yield node.lineno, " ".join(text.split())
    if not isinstance(node, ast.FormattedValue):
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):  # a part of what was shown
                yield from _within(child, skipped)


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else _text(part) for part in values)
    return ""


def longest_sentence(text: str) -> int:
    """Words of the longest sentence; what is put in counts as one."""
    return max(len(sentence.split()) for sentence in re.split(r"(?<=[.:;!?])\s", _PUT_IN.sub("x", text)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longer", type=int, default=0, metavar="WORDS", help="only texts with a longer sentence")
    least = parser.parse_args().longer
    for path in sorted(path for folder in SOURCES for path in (REPOSITORY / folder).rglob("*.py")):
        for line, text in texts(path.read_text()):
            if longest_sentence(text) > least:
                print(f"{path.relative_to(REPOSITORY)}:{line}: {text}")


if __name__ == "__main__":
    main()
