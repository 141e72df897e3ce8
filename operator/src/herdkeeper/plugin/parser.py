"""The argument parser of `kubectl herdkeeper`, from the table of its commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from herdkeeper.plugin.command import Argument, Command, Takes

PROGRAM = "kubectl herdkeeper"
COMMON = (
    Argument("--namespace", "the namespace; by default that of the context", short="-n"),
    Argument("--context", "the context of the kubeconfig; by default the current one"),
    Argument("--kubeconfig", "the kubeconfig; by default kubectl's"),
    Argument("--output", "text for people, or a document for programs", choices=("text", "json", "yaml"), default="text", short="-o"),
)
DRY_RUN = Argument("--dry-run", "let the API server validate the change, and change nothing", Takes.NOTHING)


def all_arguments(command: Command) -> tuple[Argument, ...]:
    """Returns a command's own and common arguments."""
    return (*command.arguments, *((DRY_RUN,) if command.writes else ()), *COMMON)


def parser_of(commands: Sequence[Command]) -> argparse.ArgumentParser:
    """Returns the parser. Common options may precede or follow the command's name. It exits with 2 on bad arguments."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Shows herdkeeper's stacks and sends requests to the operator.",
        epilog="Exit codes: 0 fine, 1 something is wrong, 2 bad arguments, 130 ended by Ctrl-C.",
        allow_abbrev=False,
    )
    for argument in COMMON:
        _add(parser, argument, argument.default)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in commands:
        below = subparsers.add_parser(
            command.name,
            help=command.summary,
            description=f"{PROGRAM} {command.name} {command.summary}. {command.description}",
            allow_abbrev=False,
        )
        own = {argument.name for argument in command.arguments}
        for argument in all_arguments(command):
            # a default here would override an option before the command's name
            default = argument.default if argument.name in own or argument is DRY_RUN else argparse.SUPPRESS
            _add(below, argument, default)
    return parser


def _add(parser: argparse.ArgumentParser, argument: Argument, default: str | None) -> None:
    names = [name for name in (argument.short, argument.name) if name]
    if not argument.is_option:
        many = {"nargs": "?"} if argument.takes is Takes.OPTIONAL else {}
        parser.add_argument(argument.field, metavar=argument.value_name, help=argument.meaning, default=default, **many)  # type: ignore[arg-type]
    elif argument.takes is Takes.NOTHING:
        given = {"default": default} if default is argparse.SUPPRESS else {}
        parser.add_argument(*names, dest=argument.field, action="store_true", help=argument.meaning, **given)  # type: ignore[arg-type]
    else:
        parser.add_argument(
            *names,
            dest=argument.field,
            metavar=argument.value_name,
            help=argument.meaning,
            default=default,
            choices=argument.choices or None,
            required=argument.required,
        )
