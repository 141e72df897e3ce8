"""`kubectl herdkeeper drain` and `undrain`: a bookie shall leave, or stay after all."""

from __future__ import annotations

from collections.abc import Sequence

from herdkeeper.plugin.change import Patch, carry_out
from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command
from herdkeeper.plugin.kinds import BOOKIE, BOOKKEEPER
from herdkeeper.plugin.lookup import listed
from herdkeeper.plugin.request import Awaited, Outcome, awaited, timeout_seconds, waiting
from herdkeeper.shared.objects import Json


def run_drain(call: Call) -> Answer:
    """Has a bookie leave; with `--wait` until no ledger names it and its pod is gone."""
    timeout_seconds(call)
    cluster, bookie = bookie_of(call.cluster.list(BOOKKEEPER), call.given.bookie)
    name, number = str(cluster["metadata"]["name"]), int(bookie["number"])
    if bookie["state"] in ("Lost", "Stopped"):
        raise BadInputError(f"BOOKIE {call.given.bookie}: it is {bookie['state']}, and leaves by itself once no ledger names it")
    answer = _without_change(cluster, number) or carry_out(call, [drained(cluster, number)])
    if not call.given.wait or call.given.dry_run:
        return answer
    subject = Awaited(BOOKKEEPER, name, lambda item: end_of(item, number), lambda item: progress(item, number), f"{name}-bookie-{number}")
    return awaited(call, answer, subject)


def run_undrain(call: Call) -> Answer:
    """Has a bookie stay that was to leave."""
    cluster, bookie = bookie_of(call.cluster.list(BOOKKEEPER), call.given.bookie)
    number = int(bookie["number"])
    if number not in _declared(cluster):
        why = (
            f"raise spec.bookies of the BookKeeperCluster {cluster['metadata']['name']}"
            if bookie.get("drain")
            else "nobody asked it to leave"
        )
        raise BadInputError(f"BOOKIE {call.given.bookie}: it is not in spec.drain; {why}")
    return carry_out(call, [undrained(cluster, number)])


def bookie_of(clusters: Sequence[Json], written: str) -> tuple[Json, Json]:
    """The BookKeeperCluster and the entry of its status for the bookie that is written as its StatefulSet, pod or bookie id.

    Raises:
        BadInputError: there is none; the message names those that there are.
    """
    there = []
    for cluster in clusters:
        for bookie in (cluster.get("status") or {}).get("bookies") or []:
            name = f"{cluster['metadata']['name']}-bookie-{bookie['number']}"
            if written in (name, f"{name}-0", bookie["bookieId"]):
                return cluster, bookie
            there.append(name)
    names = f"there are {listed(there)}" if there else "no BookKeeperCluster has told of any yet"
    raise BadInputError(f"BOOKIE {written}: there is no such bookie in the namespace; {names}")


def drained(cluster: Json, number: int) -> Patch:
    """The change that has a bookie leave."""
    return _patch(cluster, sorted({*_declared(cluster), number}), f"bookie {number} shall leave")


def undrained(cluster: Json, number: int) -> Patch:
    """The change that has it stay."""
    return _patch(cluster, [each for each in _declared(cluster) if each != number], f"bookie {number} stays")


def end_of(cluster: Json, number: int) -> Outcome | None:
    """That the bookie is gone; None while it is not."""
    bookie = _entry(cluster, number)
    if bookie is None or bookie["state"] == "Stopped":
        return Outcome("it has left: no ledger names it, and every entry was read back elsewhere", good=True)
    if bookie["state"] == "Lost":
        return Outcome("it has lost a disk meanwhile; see `status`", good=False)
    return None


def progress(cluster: Json, number: int) -> str:
    """How far a drain is."""
    drain = (_entry(cluster, number) or {}).get("drain") or {}
    ledgers = f"{drain['ledgers']} ledgers are left; " if drain.get("ledgers") is not None else ""
    return f"{ledgers}{drain.get('message', 'the operator has not begun yet')}"


def _entry(cluster: Json, number: int) -> Json | None:
    """What the status tells of a bookie."""
    bookies = (cluster.get("status") or {}).get("bookies") or []
    return next((each for each in bookies if each["number"] == number), None)


def _without_change(cluster: Json, number: int) -> Answer | None:
    if number not in _declared(cluster):
        return None
    sentence = f"{cluster['metadata']['name']}-bookie-{number} shall leave already"
    return Answer(sentence, {"changes": [], "outcome": sentence})


def _declared(cluster: Json) -> list[int]:
    return list(cluster["spec"].get("drain") or [])


def _patch(cluster: Json, numbers: list[int], sentence: str) -> Patch:
    """A list is replaced as a whole: the version has the API server refuse it when somebody else changed the resource meanwhile."""
    name, version = cluster["metadata"]["name"], cluster["metadata"].get("resourceVersion")
    return Patch(BOOKKEEPER, name, {"metadata": {"resourceVersion": version}, "spec": {"drain": numbers}}, sentence)


_BOOKIE = Argument("bookie", "a bookie: its name, e.g. bk-bookie-3, its pod or its bookie id", kind=BOOKIE)
DRAIN = Command(
    "drain",
    "has a bookie leave: its ledgers are copied to others and read back before anything is deleted",
    run_drain,
    (_BOOKIE, *waiting("3600")),
    description="Another bookie takes its place as far as `spec.bookies` asks for one. `status` tells what it waits for, and "
    "what would free it.",
    writes=True,
)
UNDRAIN = Command(
    "undrain",
    "takes a drain back: the bookie stays, and is made writable again",
    run_undrain,
    (_BOOKIE,),
    description="It is too late once the bookie's identity is being removed (Retiring).",
    writes=True,
)
