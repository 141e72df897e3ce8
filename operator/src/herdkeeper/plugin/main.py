"""The console script `kubectl-herdkeeper`: parses the arguments, runs the command, writes the answer, returns the exit code."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from herdkeeper.plugin.api_server import Access, ApiServer
from herdkeeper.plugin.cluster import ClusterError, ContextError
from herdkeeper.plugin.command import BAD_INPUT, INTERRUPTED, WRONG, Answer, BadInputError, Call
from herdkeeper.plugin.parser import parser_of
from herdkeeper.plugin.screen import Screen
from herdkeeper.plugin.table import COMMANDS


def main(arguments: Sequence[str] | None = None, *, output: TextIO | None = None, pause: Callable[[float], None] = time.sleep) -> int:
    """Run a command and return its exit code. Errors are one line on standard error."""
    given = parser_of(COMMANDS).parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # its encoding may lack the tree's lines and marks
    stream = output if output is not None else sys.stdout
    screen = Screen(stream, colours=stream.isatty() and "NO_COLOR" not in os.environ)
    command = next(each for each in COMMANDS if each.name == given.command)
    cluster = ApiServer(Access(given.namespace, given.context, given.kubeconfig))
    try:
        answer = command.run(Call(given, cluster, screen, pause))
        _write(answer, given.output, screen)
    except (BadInputError, ContextError) as error:
        return _failed(str(error), BAD_INPUT)
    except ClusterError as error:
        return _failed(str(error), WRONG)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # e.g. head has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return WRONG
    return answer.exit_code


def _failed(message: str, exit_code: int) -> int:
    Screen(sys.stderr).write(f"error: {message}")
    return exit_code


def _write(answer: Answer, form: str, screen: Screen) -> None:
    match form:
        case "json":
            screen.write(json.dumps(answer.document, indent=2, ensure_ascii=False))
        case "yaml":
            import yaml

            screen.write(yaml.safe_dump(answer.document, sort_keys=False, allow_unicode=True, width=1_000).rstrip())
        case _:
            if answer.text:
                screen.write(answer.text)


if __name__ == "__main__":
    sys.exit(main())
