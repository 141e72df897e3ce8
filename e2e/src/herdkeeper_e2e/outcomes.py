"""What a test says about the code that it ran on, from the output of pytest and from that of Maven."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from xml.etree.ElementTree import Element

_LACKS_A_NAME = re.compile(
    r"ImportError|ModuleNotFoundError|AttributeError|NameError|unexpected keyword argument|positional arguments?|Extra inputs are not"
)
_NAME_OF_A_TEST = re.compile(r"(?:No module named|cannot import name '\w+' from) '(?!herdkeeper)|fixture '\w+' not found")
_NOT_FOUND = re.compile(r"^ERROR: (not found|file or directory not found)|no tests ran", re.MULTILINE)
_SECTION = re.compile(r"^_+ (.+) _+$", re.MULTILINE)
_FRAME = re.compile(r"^(?!/|\.\.)(\S+\.py):\d+: in ", re.MULTILINE)
"""A line of a traceback; those of the standard library and of packages have paths that lead out of the checkout."""
_NONE_EXECUTED = re.compile(r"No tests (matching|were executed|to run)")


class Outcome(StrEnum):
    """Result of a test on the old code; the first of these that one of its parameters has counts."""

    FAILS = "fails"
    LACKS_A_NAME = "lacks a name"
    STOPS_OUTSIDE = "stops outside of the test"
    NOT_FOUND = "NOT FOUND"
    PASSES = "PASSES"


@dataclass(frozen=True)
class Result:
    """An outcome, and the line that explains a failure."""

    outcome: Outcome
    why: str = ""

    @property
    def is_of_the_body(self) -> bool:
        """The test's body ran, so newer test support can't change the result."""
        return self.outcome in (Outcome.FAILS, Outcome.PASSES)

    def better(self, earlier: Result | None) -> Result:
        """The one of the two that tells more; this one was found later."""
        if earlier is None or self.is_of_the_body:
            return self
        return min(earlier, self, key=lambda result: list(Outcome).index(result.outcome))


def of_pytest(code: int, output: str, file: str) -> Result:
    """The meaning of pytest's exit code and output (with --tb=short) for one test; the test is in this file."""
    why = next((line.strip()[:160] for line in output.splitlines() if line.startswith("E   ")), "")
    if _NOT_FOUND.search(output) or (code == 0 and not re.search(r"\d passed", output)):
        return Result(Outcome.NOT_FOUND, why)
    if code == 0:
        return Result(Outcome.PASSES)
    parts = _SECTION.split(output)
    found = {_section_outcome(title, text, file) for title, text in zip(parts[1::2], parts[2::2], strict=True)}
    return Result(next((each for each in Outcome if each in found), Outcome.STOPS_OUTSIDE), why)


def _section_outcome(title: str, text: str, file: str) -> Outcome:
    """What one failure means: where it was raised tells whose name is missing."""
    why = "\n".join(line for line in text.splitlines() if line.startswith("E "))
    raised_in = (_FRAME.findall(text) or [""])[-1]
    lacks_a_name = _LACKS_A_NAME.search(why) and not re.match(r"E\s+assert", why, re.IGNORECASE)
    if _NAME_OF_A_TEST.search(why) or (lacks_a_name and "/tests/" in raised_in and raised_in != file):
        return Outcome.STOPS_OUTSIDE
    if lacks_a_name and raised_in == file:
        return Outcome.LACKS_A_NAME
    return Outcome.STOPS_OUTSIDE if title.startswith("ERROR ") else Outcome.FAILS


def compile_errors(output: str, file: str) -> tuple[int, ...]:
    """The lines of this file at which Maven's output says that javac stopped."""
    lines = re.findall(rf"^\[ERROR\] \S*{re.escape(file)}:\[(\d+),\d+\]", output, re.MULTILINE) if "COMPILATION ERROR" in output else []
    return tuple(sorted({int(line) for line in lines}))


def of_maven(names: Sequence[str], output: str, cases: Iterable[Element], file: str) -> dict[str, Result]:
    """The result of each test of this file, by its name, from Maven's output and the `testcase` elements of its reports."""
    if "COMPILATION ERROR" in output:
        outcome = Outcome.LACKS_A_NAME if compile_errors(output, file) else Outcome.STOPS_OUTSIDE
        return dict.fromkeys(names, Result(outcome, _first_error(output)))
    ran = [(case.get("name", ""), case) for case in cases if case.get("classname", "").endswith(f".{Path(file).stem}")]
    return {name: _case_result(name, [case for called, case in ran if re.match(rf"{name}\b", called)], output) for name in names}


def _case_result(name: str, cases: Sequence[Element], output: str) -> Result:
    if not cases:
        missing = _NONE_EXECUTED.search(output) or "BUILD SUCCESS" in output
        return Result(Outcome.NOT_FOUND if missing else Outcome.STOPS_OUTSIDE, _first_error(output))
    failures = [child for case in cases for child in case if child.tag in ("failure", "error")]
    if not failures:
        ran = any(case.find("skipped") is None for case in cases)
        return Result(Outcome.PASSES if ran else Outcome.NOT_FOUND)
    # a failure of what runs before or after the test has no line of the test in its trace
    in_body = [failure for failure in failures if re.search(rf"\b{name}\b", failure.text or "")]
    said = (in_body or failures)[0]
    why = " ".join(f"{said.get('type', '').rpartition('.')[2]}: {said.get('message', '')}".split())[:160]
    return Result(Outcome.FAILS if in_body else Outcome.STOPS_OUTSIDE, why)


def _first_error(output: str) -> str:
    return next((line[:160] for line in output.splitlines() if re.match(r"\[ERROR\] (?!COMPILATION|-)\S", line)), "")
