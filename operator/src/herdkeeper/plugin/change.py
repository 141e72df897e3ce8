"""Planned changes of commands, and their execution. A dry run lets the API server check each change, by schema and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from herdkeeper.plugin.command import FINE, Answer, Call
from herdkeeper.plugin.kinds import Kind
from herdkeeper.shared.objects import Json


@dataclass(frozen=True)
class Patch:
    """A merge patch of a resource. `sentence` describes the request."""

    kind: Kind
    name: str
    body: Json
    sentence: str


@dataclass(frozen=True)
class Create:
    """A new resource."""

    kind: Kind
    name: str
    spec: Json
    sentence: str

    @property
    def document(self) -> Json:
        """Returns the document to send."""
        return {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": {"name": self.name}, "spec": self.spec}


Change = Patch | Create


def annotate(kind: Kind, name: str, annotations: Json, sentence: str) -> Patch:
    """Returns a patch that sets annotations, or removes those with None."""
    return Patch(kind, name, {"metadata": {"annotations": annotations}}, sentence)


def carry_out(call: Call, changes: Sequence[Change]) -> Answer:
    """Make the changes in order. Of several, each is checked first: one that is refused (ClusterError) leaves nothing of the others. With
    `--dry-run`, nothing changes.
    """
    rounds = (True,) if call.given.dry_run else (True, False) if len(changes) > 1 else (False,)
    for dry_run in rounds:
        for change in changes:
            match change:
                case Patch(kind, name, body, _):
                    call.cluster.patch(kind, name, body, dry_run=dry_run)
                case Create(kind, _, _, _):
                    call.cluster.create(kind, change.document, dry_run=dry_run)
    return told(call, changes)


def told(call: Call, changes: Sequence[Change]) -> Answer:
    """Returns what was done, or with `--dry-run` would be."""
    note = " (dry run, nothing changed)" if call.given.dry_run else ""
    documents = [{"resource": f"{change.kind.name}/{change.name}", "change": _sent(change), "what": change.sentence} for change in changes]
    return Answer(
        "\n".join(f"{change.kind.name}/{change.name}: {change.sentence}{note}" for change in changes),
        {"dryRun": call.given.dry_run, "changes": documents},
        FINE,
    )


def _sent(change: Change) -> Json:
    match change:
        case Patch(_, _, body, _):
            return body
        case Create(_, _, _, _):
            return change.document
