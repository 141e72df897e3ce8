"""What completes a command line of the plugin."""

from __future__ import annotations

import pytest

from herdkeeper.plugin.command import Answer, Argument, Call, Command, Takes
from herdkeeper.plugin.completion import FILES, NO_FILES, NO_SPACE, candidates, given_options, main
from herdkeeper.plugin.kinds import AUDIT, CHECKPOINT, POD, TABLESPACE, Kind


def run(_: Call) -> Answer:
    return Answer("", {})


COMMANDS = (
    Command("status", "shows", run, (Argument("--watch", "again", Takes.NOTHING),)),
    Command(
        "switchover",
        "lets",
        run,
        (
            Argument("tablespace", "one", kind=TABLESPACE),
            Argument("pod", "one", kind=POD),
            Argument("--wait", "wait", Takes.NOTHING),
            Argument("--timeout", "seconds"),
        ),
        writes=True,
    ),
    Command("report", "opens", run, (Argument("run", "one", kinds=(CHECKPOINT, AUDIT)),)),
    Command("explain", "tells", run, (Argument("reason", "one", Takes.OPTIONAL, choices=("InvalidSpec", "NoLeader")),)),
)


def completed(*words: str) -> list[str]:
    def names_of(kind: Kind) -> list[str]:
        return {"Tablespace": ["flights", "orders"], "Pod": ["db-herddb-0"], "Checkpoint": ["flights-1", "orders-1"]}[kind.name]

    return [text for text, _ in candidates(COMMANDS, words, names_of)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["status", "switchover", "report", "explain"]),
        (("sw",), ["switchover"]),
        (("-n", "demo", "stat"), ["status"]),
        (("--namespace=demo", "stat"), ["status"]),
        (("switchover", ""), ["flights", "orders"]),
        (("switchover", "--wait", "--timeout", "3", "o"), ["orders"]),
        (("switchover", "--timeout", ""), []),
        (("switchover", "flights", ""), ["db-herddb-0"]),
        (("switchover", "flights", "db-herddb-0", ""), []),
        (("switchover", "--w"), ["--wait"]),
        (("switchover", "--d"), ["--dry-run"]),
        (("status", "--d"), []),
        (("status", "-o", ""), ["text", "json", "yaml"]),
        (("explain", "No"), ["NoLeader"]),
        (("report", ""), ["ckpt/", "raudit/"]),
        (("report", "c"), ["ckpt/"]),
        (("report", "ckpt/f"), ["ckpt/flights-1"]),
        (("report", "checkpoints/o"), ["checkpoints/orders-1"]),
        (("report", "ts/"), []),
        (("report", "bread/"), []),
        (("bread", ""), []),
    ],
)
def test_what_may_stand_at_the_cursor_completes_it(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


def test_names_are_those_of_the_namespace_and_context_that_were_given() -> None:
    for words in (["-n", "demo", "switchover", "--context", "kind"], ["--namespace=demo", "switchover", "--context=kind"]):
        assert given_options(words) == {"namespace": "demo", "context": "kind"}


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["report", "--file", ""], [FILES]),
        (["report", ""], ["ckpt/\tCheckpoint", "raudit/\tReplicationAudit", NO_SPACE]),
        (["report", "ts/"], [NO_FILES]),
    ],
)
def test_the_shell_completes_files_where_a_file_is_named_and_no_space_behind_a_kind(
    words: list[str], lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-herdkeeper", *words])
    assert main() == 0
    assert capsys.readouterr().out.splitlines() == lines
