"""Tutorials are read and carried out as they stand there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdkeeper_e2e.tutorials.carry_out import TutorialError, carry_out
from herdkeeper_e2e.tutorials.output import is_as_shown
from herdkeeper_e2e.tutorials.page import PageError, Step, steps_of
from herdkeeper_e2e.tutorials.shell import Shell, ShellError

PAGES = sorted((Path(__file__).resolve().parents[3] / "docs/tutorials").glob("*.md"))
PAGE = """# Page
```
$ not a command
```
```console
$ echo one
one
$ cat <<END
> two
> END
two
```
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path, os.environ)
    yield made
    made.close()


def test_the_commands_are_those_of_console_blocks_with_what_they_print() -> None:
    assert steps_of(PAGE) == (Step("echo one", ("one",), 6), Step("cat <<END\ntwo\nEND", ("two",), 8))


def test_a_block_that_begins_with_output_and_one_without_end_are_refused() -> None:
    with pytest.raises(PageError, match=r"line 2: .* and this is: one"):
        steps_of("```console\none\n```")
    with pytest.raises(PageError, match="does not end"):
        steps_of("```console\n$ true")


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("anything\n", (), True),
        ("one\n", ("one",), True),
        ("one  \n\n", ("one",), True),
        ("one\ntwo\n", ("one",), False),
        ("pod db-1 deleted\n", ("pod ... deleted",), True),
        ("pod db-1\ndeleted\n", ("pod ... deleted",), False),
        ("a\nb\nc\n", ("a", "...", "c"), True),
        ("a\nc\n", ("a", "...", "c"), True),
        ("a\nb\n", ("a", "...", "c"), False),
        ("1.5 (x)\n", ("1.5 (x)",), True),
        ("105 (x)\n", ("1.5 (x)",), False),
    ],
)
def test_dots_stand_for_any_text_of_a_line_or_for_any_lines(printed: str, shown: tuple[str, ...], same: bool) -> None:
    assert is_as_shown(printed, shown) is same


def test_a_shell_keeps_variables_and_tells_output_and_exit_code(shell: Shell) -> None:
    assert shell.run("name=world", 10).code == 0
    ended = shell.run('echo "hello $name"; echo bad >&2; false', 10)
    assert (ended.printed, ended.code) == ("hello world\nbad\n", 1)
    assert shell.run("printf 'no line end'", 10).printed == "no line end"
    assert shell.run("cat", 10).printed == ""


def test_a_command_that_does_not_end_or_ends_the_shell_is_told(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(ShellError, match=r"`sleep 600` did not end within 0\.2 s"):
        shell.run("sleep 600", 0.2)
    with pytest.raises(ShellError, match="ended the shell: gone"):
        Shell(tmp_path, os.environ).run("echo gone; exit 3", 10)


def test_a_page_is_carried_out_up_to_the_first_command_that_differs(shell: Shell, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert carry_out(page, shell, lambda _: None) == 2
    page.write_text("```console\n$ echo three\nfour\n$ touch reached\n```\n")
    with pytest.raises(TutorialError, match=r"page\.md, line 2: `echo three` printed\nthree\n\nand the page shows\nfour"):
        carry_out(page, shell, lambda _: None)
    page.write_text("```console\n$ false\n```\n")
    with pytest.raises(TutorialError, match="ended with code 1"):
        carry_out(page, shell, lambda _: None)
    assert not (tmp_path / "reached").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_tutorial_can_be_carried_out(page: Path) -> None:
    assert len(steps_of(page.read_text())) > 5
