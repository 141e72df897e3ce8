"""Completion: the program `kubectl_complete-herdkeeper`, which kubectl's own completion calls in every shell.

It gets the words after the plugin's name, the last one incomplete, and answers like cobra's `__complete`: one candidate per line, its
description after a tab, and finally a directive (4: no file names; 2: no space behind, for more of the word is to come).
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from herdkeeper.plugin.api_server import Access, ApiServer
from herdkeeper.plugin.cluster import ClusterError, ContextError
from herdkeeper.plugin.command import Argument, Command, Takes
from herdkeeper.plugin.kinds import Kind, resource_kind
from herdkeeper.plugin.parser import COMMON, all_arguments
from herdkeeper.plugin.table import COMMANDS

NO_FILES, FILES, NO_SPACE = ":4", ":0", ":6"
NamesOf = Callable[[Kind], Iterable[str]]


def candidates(commands: Sequence[Command], words: Sequence[str], names_of: NamesOf) -> tuple[tuple[str, str], ...]:
    """Returns the candidates for the last word, each with its description."""
    *before, written = words or ("",)
    command, arguments, positions = _place(commands, before)
    option = _named(arguments, before[-1]) if before else None
    found: Iterable[tuple[str, str]]
    if option is not None and option.takes is Takes.VALUE:
        found = _values(option, written, names_of)
    elif written.startswith("-"):
        found = ((argument.name, argument.help) for argument in arguments if argument.is_option)
    elif command is None:
        found = ((each.name, each.summary) for each in commands) if not positions else ()
    else:
        places = [argument for argument in arguments if not argument.is_option]
        found = _values(places[positions], written, names_of) if positions < len(places) else ()
    return tuple((text, about) for text, about in found if text.startswith(written))


def given_options(words: Sequence[str]) -> Mapping[str, str]:
    """Returns the given common options by field: names are completed from that cluster."""
    split = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    pairs = ((_named(COMMON, word), value) for word, value in itertools.pairwise(split))
    return {option.field: value for option, value in pairs if option is not None}


def _place(commands: Sequence[Command], before: Sequence[str]) -> tuple[Command | None, tuple[Argument, ...], int]:
    """Returns the named command, its possible arguments, and how many of its positional arguments are given."""
    command: Command | None = None
    arguments: tuple[Argument, ...] = COMMON
    taken, is_value = 0, False
    for word in before:
        option = _named(arguments, word)
        if is_value:
            is_value = False
        elif option is not None:
            is_value = option.takes is Takes.VALUE
        elif word.startswith("-"):
            continue
        elif command is None and not taken:
            command = next((each for each in commands if each.name == word), None)
            arguments = all_arguments(command) if command is not None else COMMON
            taken = 0 if command is not None else 1
        else:
            taken += 1
    return command, arguments, taken


def _named(arguments: Iterable[Argument], word: str) -> Argument | None:
    return next((each for each in arguments if each.is_option and word in (each.name, each.short) and word), None)


def _values(argument: Argument, written: str, names_of: NamesOf) -> Iterable[tuple[str, str]]:
    word, slash, _ = written.partition("/")
    if slash:
        kind = resource_kind(word)
        return ((f"{word}/{name}", "") for name in (names_of(kind) if kind is not None and kind in argument.kinds else ()))
    known = argument.choices or (names_of(argument.kind) if argument.kind is not None else ())
    return itertools.chain(((value, "") for value in known), ((f"{kind.short}/", kind.name) for kind in argument.kinds))


def main() -> int:
    """The console script. Errors complete nothing: their output would end up in the command line."""
    words = sys.argv[1:]
    options = given_options(words[:-1])
    cluster = ApiServer(Access(options.get("namespace"), options.get("context"), options.get("kubeconfig")))

    def names_of(kind: Kind) -> Iterable[str]:
        with contextlib.suppress(ClusterError, ContextError):
            return [str(item["metadata"]["name"]) for item in cluster.list(kind)]
        return ()

    found = candidates(COMMANDS, words, names_of)
    for text, about in found:
        print(f"{text}\t{about}" if about else text)
    option = words[-2] if len(words) > 1 else ""
    is_file = option in ("-f", "--file", "--filename", "--kubeconfig")
    print(FILES if is_file else NO_SPACE if any(text.endswith("/") for text, _ in found) else NO_FILES)
    return 0
