"""`kubectl herdkeeper drain` and `undrain`: drain a bookie, or cancel its drain."""

from __future__ import annotations

from collections.abc import Sequence

from herdkeeper.plugin.change import Patch, carry_out
from herdkeeper.plugin.command import Answer, Argument, BadInputError, Call, Command, listed
from herdkeeper.plugin.kinds import BOOKIE, BOOKKEEPER
from herdkeeper.plugin.request import Awaited, Outcome, awaited, timeout_seconds, waiting
from herdkeeper.shared.counted import counted
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason


def run_drain(call: Call) -> Answer:
    """Drain a bookie; with `--wait`, wait until no ledger names it and its pod is gone."""
    timeout_seconds(call)
    cluster, bookie = bookie_of(call.cluster.list(BOOKKEEPER), call.given.bookie)
    name, number = str(cluster["metadata"]["name"]), int(bookie["number"])
    if bookie["state"] in ("Lost", "Stopped"):
        raise BadInputError(f"BOOKIE {call.given.bookie}: it is {bookie['state']}, and is removed automatically once no ledger names it")
    answer = _without_change(cluster, number) or carry_out(call, [drained(cluster, number)])
    subject = Awaited(BOOKKEEPER, name, lambda item: end_of(item, number), lambda item: progress(item, number), f"{name}-bookie-{number}")
    return awaited(call, answer, subject)


def run_undrain(call: Call) -> Answer:
    """Cancel the drain of a bookie."""
    cluster, bookie = bookie_of(call.cluster.list(BOOKKEEPER), call.given.bookie)
    number = int(bookie["number"])
    if number not in _declared(cluster):
        why = (
            f"raise spec.bookies of the BookKeeperCluster {cluster['metadata']['name']}"
            if bookie.get("drain")
            else "no drain was requested"
        )
        raise BadInputError(f"BOOKIE {call.given.bookie}: it is not in spec.drain; {why}")
    return carry_out(call, [undrained(cluster, number, stopped=bookie["state"] == "Stopped")])


def bookie_of(clusters: Sequence[Json], written: str) -> tuple[Json, Json]:
    """Returns cluster and status entry of a bookie, by StatefulSet, pod or bookie id. Raises BadInputError, naming those there are."""
    there = []
    for cluster in clusters:
        for bookie in (cluster.get("status") or {}).get("bookies") or []:
            name = f"{cluster['metadata']['name']}-bookie-{bookie['number']}"
            if written in (name, f"{name}-0", bookie["bookieId"]):
                return cluster, bookie
            there.append(name)
    names = f"there are {listed(there)}" if there else "no BookKeeperCluster has reported any yet"
    raise BadInputError(f"BOOKIE {written}: there is no such bookie in the namespace; {names}")


def drained(cluster: Json, number: int) -> Patch:
    return _patch(cluster, sorted({*_declared(cluster), number}), f"bookie {number} will be drained")


def undrained(cluster: Json, number: int, *, stopped: bool = False) -> Patch:
    """Returns the change that cancels the drain. The status does not tell whether the identity of a stopped one is being removed."""
    stays = "has been stopped: it stays unless its identity is being removed already; see `status`" if stopped else "stays"
    return _patch(cluster, [each for each in _declared(cluster) if each != number], f"bookie {number} {stays}")


def end_of(cluster: Json, number: int) -> Outcome | None:
    """Returns that the bookie is gone, or will not go, or None. A status that was lost names no bookie at all."""
    if not (cluster.get("status") or {}).get("bookies"):
        return None
    bookie = _entry(cluster, number)
    if bookie is None or bookie["state"] == "Stopped":
        return Outcome("it is drained: no ledger names it, and every entry was read back elsewhere", good=True)
    if bookie["state"] == "Lost":
        return Outcome("it has lost a disk meanwhile; see `status`", good=False)
    if number not in _declared(cluster) and not bookie.get("drain"):
        return Outcome("its drain was cancelled meanwhile", good=False)
    return None


def progress(cluster: Json, number: int) -> str:
    drain = (_entry(cluster, number) or {}).get("drain") or {}
    message = str(drain.get("message", "the operator has not started yet"))
    ledgers = drain.get("ledgers")
    # the one reason whose message begins with their number
    if ledgers is None or message.startswith(f"{Reason.MOVING_LEDGERS}:"):
        return message
    return f"{counted(ledgers, 'ledger is', 'ledgers are')} left; {message}"


def _entry(cluster: Json, number: int) -> Json | None:
    bookies = (cluster.get("status") or {}).get("bookies") or []
    return next((each for each in bookies if each["number"] == number), None)


def _without_change(cluster: Json, number: int) -> Answer | None:
    if number not in _declared(cluster):
        return None
    sentence = f"{cluster['metadata']['name']}-bookie-{number} is already being drained"
    return Answer(sentence, {"changes": [], "outcome": sentence})


def _declared(cluster: Json) -> list[int]:
    return list(cluster["spec"].get("drain") or [])


def _patch(cluster: Json, numbers: list[int], sentence: str) -> Patch:
    """A list is replaced as a whole. With the version, the API server refuses it if the resource has changed."""
    name, version = cluster["metadata"]["name"], cluster["metadata"].get("resourceVersion")
    return Patch(BOOKKEEPER, name, {"metadata": {"resourceVersion": version}, "spec": {"drain": numbers}}, sentence)


_BOOKIE = Argument("bookie", "a bookie: its name, e.g. bk-bookie-3, its pod or its bookie id", kind=BOOKIE)
DRAIN = Command(
    "drain",
    "drains a bookie: its ledgers are copied to others and read back before anything is deleted",
    run_drain,
    (_BOOKIE, *waiting("3600")),
    description="Another bookie takes its place, up to `spec.bookies`. `status` shows what the drain waits for, and how to unblock it.",
    writes=True,
)
UNDRAIN = Command(
    "undrain",
    "cancels a drain: the bookie stays and becomes writable again",
    run_undrain,
    (_BOOKIE,),
    description="This is impossible once the bookie's identity is being removed (Retiring).",
    writes=True,
)
