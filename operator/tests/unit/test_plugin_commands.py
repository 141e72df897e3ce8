"""What all commands of the plugin have in common: arguments, exit codes, completion, their page, and how fast they start."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from herdkeeper.api import KINDS
from herdkeeper.plugin.command import BAD_INPUT, FINE, WRONG, Takes
from herdkeeper.plugin.kinds import RESOURCES, resource_kind
from herdkeeper.plugin.main import main
from herdkeeper.plugin.page import page, usage
from herdkeeper.plugin.parser import all_arguments, parser_of
from herdkeeper.plugin.screen import Colour, Screen
from herdkeeper.plugin.table import COMMANDS

REPOSITORY = Path(__file__).resolve().parents[3]
EACH = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def test_its_kinds_are_those_of_the_models() -> None:
    assert {(kind.name, kind.plural, kind.short) for kind in RESOURCES} == {(kind.KIND, kind.PLURAL, kind.SHORT_NAME) for kind in KINDS}


@pytest.mark.parametrize("word", ["ts", "tablespace", "Tablespaces", "tablespaces.herdkeeper.io"])
def test_a_kind_may_be_written_as_kubectl_takes_it(word: str) -> None:
    assert resource_kind(word).name == "Tablespace"
    assert resource_kind("pods") is None


@EACH
def test_each_command_is_in_the_page_with_each_of_its_arguments(command) -> None:
    text = (REPOSITORY / "docs/kubectl-plugin.md").read_text()
    assert text == page(COMMANDS)
    section = text.partition(f"\n## {command.name}\n")[2].partition("\n## ")[0]
    assert usage(command) in section
    several = text.partition("\n## Options of several commands\n")[2].partition("\n## ")[0]
    for argument in command.arguments:
        assert argument.help in section or (argument.help in several and argument.name in section)


@EACH
def test_each_command_says_what_it_does_and_takes_the_common_options(command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command.name, "--help"])
    assert ended.value.code == FINE
    # words may be broken over lines
    shown = "".join(capsys.readouterr().out.split())
    assert "".join(command.summary.split()) in shown
    assert all("".join(argument.meaning.split()) in shown for argument in all_arguments(command))
    names = [argument.name for argument in all_arguments(command)]
    assert {"--namespace", "--context", "--output"} <= set(names)
    assert ("--dry-run" in names) == command.writes
    assert len(names) == len(set(names))


@EACH
def test_each_command_is_described_in_sentences(command) -> None:
    assert not command.summary.endswith((".", "?"))
    assert command.description == "" or command.description.endswith(".")


@pytest.mark.parametrize("words", [["-n", "other", "status"], ["status", "-n", "other"], ["status", "--namespace=other"]])
def test_common_options_may_stand_on_either_side_of_the_command(words: list[str]) -> None:
    assert parser_of(COMMANDS).parse_args(words).namespace == "other"


@pytest.mark.parametrize("words", [[], ["bread"], ["status", "--bread"], ["status", "-o", "xml"]])
def test_bad_arguments_end_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == BAD_INPUT


def test_bad_input_ends_with_2_and_a_line_that_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Bread"]) == BAD_INPUT
    assert capsys.readouterr().err.startswith("error: REASON Bread: ")


def test_the_help_of_an_option_says_which_values_it_takes_and_which_one_it_has_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "(Deep, Light); Deep when absent" in shown
    assert "(text, json, yaml); text when absent" in shown


@pytest.mark.parametrize(
    ("words", "example"),
    [
        (["report", "flights-1"], "Checkpoint/flights-1"),
        (["report", "raudit/"], "ReplicationAudit/NAME"),
        (["pause", "zk"], "ZooKeeperCluster/zk"),
    ],
)
def test_a_resource_without_its_kind_is_answered_with_a_kind_that_the_command_takes(
    words: list[str], example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == BAD_INPUT
    assert capsys.readouterr().err.endswith(f"name a resource as KIND/NAME, e.g. {example}\n")


def test_a_cluster_that_does_not_answer_ends_with_1_and_its_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--kubeconfig", str(kubeconfig(tmp_path))]) == WRONG
    shown = capsys.readouterr().err
    assert "the API server at https://127.0.0.1:9 does not answer: Failed to establish a new connection: [Errno 111]" in shown
    assert "name another by --context or --kubeconfig" in shown


def test_a_context_that_is_not_there_is_named_with_those_that_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--kubeconfig", str(kubeconfig(tmp_path)), "--context", "bread"]) == BAD_INPUT
    assert "--context bread: the kubeconfig has no such context; it has here" in capsys.readouterr().err


def test_a_kubeconfig_that_is_not_there_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--kubeconfig", str(tmp_path / "none")]) == WRONG
    shown = capsys.readouterr().err
    assert "Name a kubeconfig with --kubeconfig" in shown
    assert ".." not in shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no: [yaml",
        "just words",
        "[a, list]",
        "contexts: {here: {cluster: here}}\ncurrent-context: here",
        "contexts: [{name: here}]\ncurrent-context: here",
        "contexts: [{name: here, context: {cluster: none}}]\ncurrent-context: here",
        "contexts: [{name: here, context: {cluster: a, user: me}}]\ncurrent-context: here\nclusters: [{name: a, cluster: {server: 'http://a'}}]"
        "\nusers: [{name: me, token: hunter2}]",
        "contexts: [{name: here, context: {cluster: a}}]\ncurrent-context: here\n"
        "clusters: [{name: a, cluster: {server: 'https://a', certificate-authority: /none}}]",
    ],
)
def test_a_kubeconfig_that_is_none_ends_with_1_and_a_line_that_names_it_and_no_token(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    assert main(["status", "--kubeconfig", str(path)]) == WRONG
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert shown.startswith("error: ")
    assert "name another one by --kubeconfig" in shown or "Name a kubeconfig with --kubeconfig" in shown
    assert "hunter2" not in shown


def test_a_folder_is_no_kubeconfig(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--kubeconfig", str(tmp_path)]) == WRONG
    assert f"the kubeconfig {tmp_path} can't be used: Is a directory. " in capsys.readouterr().err


def test_a_file_that_is_no_text_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff\xfe")
    assert main(["plan", "-f", str(path)]) == BAD_INPUT
    assert f"--filename {path}: it can't be read (it is not text in UTF-8)" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_ends_a_long_answer(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as output:
        assert main(["explain"], output=output) == WRONG


def kubeconfig(folder: Path) -> Path:
    """A kubeconfig of an API server that nobody runs."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": "demo"}}],
        "current-context": "here",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_document_is_json_or_yaml() -> None:
    written = {}
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        output = io.StringIO()
        assert main(["explain", "InvalidSpec", "-o", form], output=output) == FINE
        written[form] = read(output.getvalue())
    assert written["json"] == written["yaml"]
    assert written["json"]["reason"] == "InvalidSpec"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_row_or_a_log_gives_a_terminal_no_command() -> None:
    text = "\x1b]0;title\x07a\rb\x9b2J\tc"
    terminal, file = Terminal(), io.StringIO()
    Screen(terminal).write(text)
    Screen(file).write(text)
    assert terminal.getvalue() == "\\x1b]0;title\\x07a\\x0db\\x9b2J\tc\n"
    assert file.getvalue() == f"{text}\n", "a program gets what there is"
    hidden = Terminal()
    Screen(hidden).write("a\x1b[8mb\u202ec\u2069")
    assert hidden.getvalue() == "a\\x1b[8mb\\u202ec\\u2069\n", "what follows is neither hidden nor turned round"
    painted = Screen(terminal, colours=True)
    painted.write(painted.paint("wrong", Colour.RED))
    assert terminal.getvalue().endswith("\x1b[31mwrong\x1b[0m\n")


def test_what_the_encoding_of_the_output_lacks_is_written_as_a_code() -> None:
    """Such as that of a pipe on Windows."""
    words = [sys.executable, "-m", "herdkeeper.plugin.main", "explain", "InvalidSpec"]
    ended = subprocess.run(words, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (FINE, "")
    assert "  \\u2192 Change the field that the message names." in ended.stdout


def test_nor_does_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have a message of a status, or what a pod answers."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["explain", "\x1b]52;c;cm0K\x07"]) == BAD_INPUT
    assert terminal.getvalue().startswith("error: REASON \\x1b]52;c;cm0K\\x07: ")


def test_values_of_arguments_that_are_optional_stand_last() -> None:
    for command in COMMANDS:
        places = [argument.takes is Takes.OPTIONAL for argument in command.arguments if not argument.is_option]
        assert places == sorted(places), command.name


@pytest.mark.parametrize("module", ["herdkeeper.plugin.main", "herdkeeper.plugin.completion"])
def test_starting_imports_neither_the_client_of_kubernetes_nor_the_models(module: str) -> None:
    """They take longer to import than all else: what asks no cluster does without."""
    program = f"import sys, {module}; print(sorted({{'kubernetes', 'pydantic', 'urllib3', 'yaml', 'herdkeeper.api'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip() == "[]"
