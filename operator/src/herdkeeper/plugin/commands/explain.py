"""`kubectl herdkeeper explain`: what a reason means, and what to do. It needs no cluster."""

from __future__ import annotations

import difflib

from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command, Takes
from herdkeeper.plugin.how_to import Row, rows_about
from herdkeeper.plugin.reasons import EXPLAINED, group
from herdkeeper.plugin.screen import Colour, Screen
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason


def run(call: Call) -> Answer:
    if call.given.reason is None:
        widest = max(len(reason) for reason in Reason)
        text = "\n".join(f"{reason.value:<{widest}}  {known.means}" for reason, known in EXPLAINED.items())
        return Answer(text, {"reasons": [_document(reason, ()) for reason in EXPLAINED]})
    reason = reason_written(call.given.reason)
    rows = rows_about(reason)
    return Answer(_text(reason, rows, call.screen), _document(reason, rows))


def reason_written(word: str) -> Reason:
    """Returns the reason with this name, ignoring case. Raises BadInputError, naming similar ones, if there is none."""
    by_small = {reason.value.lower(): reason for reason in Reason}
    if word.lower() in by_small:
        return by_small[word.lower()]
    alike = difflib.get_close_matches(word.lower(), by_small, n=3)
    near = f"did you mean {' or '.join(by_small[each].value for each in alike)}? " if alike else ""
    raise BadInputError(f"REASON {word}: there is no such reason; {near}`explain` alone lists all of them")


def _text(reason: Reason, rows: tuple[Row, ...], screen: Screen) -> str:
    known = EXPLAINED[reason]
    lines = [f"{screen.paint(reason.value, Colour.BOLD)} ({group(reason)})", f"  {known.means}", f"  → {known.do}"]
    for row in rows:
        lines += [f"docs/{row.page}, “{row.heading}”", f"  {row.subject}: {row.sentences}"]
    return "\n".join(lines)


def _document(reason: Reason, rows: tuple[Row, ...]) -> Json:
    known = EXPLAINED[reason]
    found = [{"page": row.page, "heading": row.heading, "about": row.subject, "text": list(row.cells)} for row in rows]
    return {
        "reason": reason.value,
        "group": group(reason),
        "means": known.means,
        "do": known.do,
        **({"documentation": found} if found else {}),
    }


COMMAND = Command(
    "explain",
    "explains a reason of a condition or event, and what to do",
    run,
    (Argument("reason", "a reason, e.g. InvalidSpec; by default all are listed", Takes.OPTIONAL, choices=tuple(Reason)),),
    description="It also shows matching rows of the documentation's tables. It needs no cluster.",
)
