"""`kubectl herdkeeper status`: the tree of stacks."""

from __future__ import annotations

import datetime

from herdkeeper.plugin.cluster import NoAnswerError
from herdkeeper.plugin.command import FINE, WRONG, Answer, Argument, BadInputError, Call, Command, Takes, nothing_in, seen
from herdkeeper.plugin.commands.doctor import OPERATOR_NAMESPACE, wrong_with_operator
from herdkeeper.plugin.stack_tree import State, document, stacks, worst
from herdkeeper.plugin.tree_text import tree_text

LOOK_SECONDS = 2.0
"""Refresh interval of `--watch`."""


def run(call: Call) -> Answer:
    if call.given.watch and call.given.output != "text":
        raise BadInputError(f"--output {call.given.output}: --watch shows text; remove one of them")
    return _watched(call) if call.given.watch else _look(call)


def _watched(call: Call) -> Answer:
    """Shows each change, until Ctrl-C. While the API server does not answer, the last tree stays, with a line that says so."""
    tree = shown = ""
    while True:
        try:
            text = tree = _look(call).text
        except NoAnswerError as error:
            if not tree:
                raise
            text = f"{tree}\n{error}"
        if text != shown:
            call.screen.clear()
            call.screen.write(text)
            shown = text
        call.pause(LOOK_SECONDS)


def _look(call: Call) -> Answer:
    found = seen(call.cluster)
    parts = stacks(found.resources, found.pods, datetime.datetime.now(datetime.UTC))
    namespace = call.cluster.namespace
    state = worst(parts)
    shown = {"namespace": namespace, "state": state.value, "stacks": [document(part) for part in parts]}
    text = tree_text(f"namespace {namespace}", parts, call.screen) if parts else nothing_in(namespace)
    wrong, unknown = wrong_with_operator(call.cluster, call.given.operator_namespace)
    operator = [unknown] if unknown else [f"{each.text}\n    What is shown may be old." for each in wrong]
    return Answer(
        "\n".join((text, *found.unread, *operator)),
        {
            **shown,
            **({"notShown": list(found.unread)} if found.unread else {}),
            **({"operator": unknown or "; ".join(each.sentence for each in wrong)} if operator else {}),
        },
        WRONG if state is State.WRONG or found.unread else FINE,
    )


COMMAND = Command(
    "status",
    "shows all stacks of the namespace as a tree: what exists, what is wrong and what to do",
    run,
    (Argument("--watch", "refresh every two seconds, until Ctrl-C", Takes.NOTHING, short="-w"), OPERATOR_NAMESPACE),
    description="✔ is as declared, ● is being made or changed, or runs, ✘ is not as declared. It shows only the newest Checkpoint and "
    "ReplicationAudit, running ones, and audits with findings that no later audit has checked. While a server restarts, what waits for "
    "it counts as being changed, for two minutes at most. Without a running operator, what is shown may be old, which the last line says. "
    "The exit code is 1 if anything of the stacks is wrong, or can't be read.",
)
