"""Planned changes of commands, and their execution. A dry run lets the API server check each change, by schema and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from herdkeeper.plugin.command import FINE, Answer, Call
from herdkeeper.plugin.kinds import Kind
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json
from herdkeeper.shared.paused import paused_by


@dataclass(frozen=True)
class Patch:
    """A merge patch of a resource. `sentence` describes the request."""

    kind: Kind
    name: str
    document: Json
    sentence: str


@dataclass(frozen=True)
class Create:
    kind: Kind
    name: str
    spec: Json
    sentence: str

    @property
    def document(self) -> Json:
        return {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": {"name": self.name}, "spec": self.spec}


Change = Patch | Create


def annotate(kind: Kind, name: str, annotations: Json, sentence: str) -> Patch:
    """Returns a patch that sets annotations, or removes those with None."""
    return Patch(kind, name, {"metadata": {"annotations": annotations}}, sentence)


def carry_out(call: Call, changes: Sequence[Change]) -> Answer:
    """Make the changes in order; with `--dry-run` none. Several are checked first, so that a refused one (ClusterError) leaves none."""
    held_up: dict[str, str] = {}
    rounds = (True,) if call.given.dry_run else (True, False) if len(changes) > 1 else (False,)
    for dry_run in rounds:
        for change in changes:
            if isinstance(change, Patch):
                changed = call.cluster.patch(change.kind, change.name, change.document, dry_run=dry_run)
                held_up[change.name] = _why_not_now(change, changed)
            else:
                call.cluster.create(change.kind, change.document, dry_run=dry_run)
    return told(call, changes, held_up)


def _why_not_now(change: Patch, changed: Json) -> str:
    """Returns why the operator does not do now what a patch asks for, as a phrase; else an empty text."""
    written, metadata = (change.document.get("metadata") or {}).get("annotations") or {}, changed["metadata"]
    if names.PAUSED_ANNOTATION in written:
        return ""
    if metadata.get("deletionTimestamp"):
        return "; it is being deleted, so this is not done any more"
    mark = paused_by(metadata.get("annotations") or {})
    return f"; {mark} stops this until you `resume {change.kind.name}/{change.name}`" if mark is not None else ""


def told(call: Call, changes: Sequence[Change], held_up: Mapping[str, str]) -> Answer:
    """Returns what was done, or with `--dry-run` would be. `held_up` says by a resource's name why it is not done now."""
    note = " (dry run, nothing changed)" if call.given.dry_run else ""
    documents: list[Json] = []
    for change in changes:
        label = f"{change.kind.name}/{change.name}"
        documents.append({"resource": label, "change": change.document, "what": f"{change.sentence}{held_up.get(change.name, '')}"})
    text = "\n".join(f"{each['resource']}: {each['what']}{note}" for each in documents)
    return Answer(text, {"dryRun": call.given.dry_run, "changes": documents}, FINE)
