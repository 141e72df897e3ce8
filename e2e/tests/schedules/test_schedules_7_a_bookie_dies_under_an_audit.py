"""A bookie is killed while a deep audit reads from it, and comes back; then another one goes, and stays away. The audit says what is true:
what could be read again is whole, what could not is unknown, and nothing is called missing. That it went in the middle is proven by times:
after the audit had planned its work, and before its first pass over all of it ended, which then lacked a part of just this bookie."""

from __future__ import annotations

from datetime import UTC, datetime

from conftest import Stack, say
from runs import audited, declare_audit, first_ledger, status_of

from herdkeeper.shared.names import BOOKIE_ADMIN_PORT, BOOKIE_PORT
from herdkeeper_e2e.bookie_metrics import bytes_read
from herdkeeper_e2e.connections import TABLES, is_connected
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.pod_process import kill
from herdkeeper_e2e.spans import Span, line_with, said_at, why_not_within
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

COPIES = 3
"""Of each entry: the quickstart's write quorum."""
SECONDS_A_BOOKIE = 30
"""Which the slowed audit takes to read what one has, one bookie after the other. While two are read, the one that was killed starts."""
AN_ANSWER, OF_OTHERS = 2 << 20, 1 << 18
"""Bytes of an answer to an audit, and more than what others, who follow the log, ask of a bookie meanwhile."""
LEAST_BYTES = 2 * AN_ANSWER
"""Of the ledger on one bookie: behind the second answer there is more."""


def declare_slow_audit(stack: Stack, name: str, ledger: int, whole: Object) -> None:
    """A deep audit of one ledger, which reads from one bookie at a time: the share of each of what `whole` has read takes it
    SECONDS_A_BOOKIE."""
    share = whole["bytes"] // COPIES
    assert share > LEAST_BYTES, "too little to be in the middle of"
    rate = f"{share // SECONDS_A_BOOKIE // 1024}Ki"
    declare_audit(stack.kubectl, name, {"localThreads": 1}, ledgers=[ledger], bytesPerSecondPerBookie=rate)


def driver_of(stack: Stack, audit: str) -> Object | None:
    pods = stack.kubectl.list("pods", f"app.kubernetes.io/name=audit,herdkeeper.io/owner-name={audit}")
    return pods[0] if pods else None


def log_of(stack: Stack, audit: str) -> str:
    """Each line with its time before it."""
    driver = driver_of(stack, audit)
    return "" if driver is None else stack.kubectl.run("logs", "--timestamps", driver["metadata"]["name"])


def read_by(stack: Stack, bookie: Object) -> int:
    """Bytes that a bookie has read so far."""
    name, namespace = bookie["metadata"]["name"], bookie["metadata"]["namespace"]
    page = f"/api/v1/namespaces/{namespace}/pods/{name}:{BOOKIE_ADMIN_PORT}/proxy/metrics"
    return bytes_read(stack.kubectl.run("get", "--raw", page))


def bookie_that_is_read(stack: Stack, audit: str) -> Object:
    """The pod of a bookie from which an audit, which has planned all of its work, has taken one answer: the bookie reads the next one, and
    an audit asks for it after it has verified the one before."""
    bookies = stack.kubectl.list("pods", "app.kubernetes.io/name=bookie")
    first: dict[str, int] = {}

    def ask() -> Object | Pending:
        driver = driver_of(stack, audit)
        if driver is None or driver["status"]["phase"] == "Pending":
            return Pending(f"{audit} has not started")
        assert driver["status"]["phase"] == "Running", "it ended before a bookie was killed"
        if "planned" not in log_of(stack, audit):
            # of what is read until then nothing belongs to the work that is planned
            first.update((bookie["metadata"]["name"], read_by(stack, bookie)) for bookie in bookies)
            return Pending(f"{audit} has not planned yet")
        for bookie in bookies:
            name = bookie["metadata"]["name"]
            if is_connected(stack.kubectl.exec(name, "cat", *TABLES), BOOKIE_PORT, driver["status"]["podIP"]):
                now = read_by(stack, bookie)
                first.setdefault(name, now)
                if now - first[name] > AN_ANSWER + OF_OTHERS:
                    return bookie
                return Pending(f"{audit} waits for an answer of {name}")
        return Pending(f"{audit} is connected to no bookie")

    return wait_for("a bookie that is read", ask, Limit(300, 0.2), say)


def killed(stack: Stack, bookie: Object) -> Span:
    """When it was: its process is gone at once, without a word."""
    name, began = bookie["metadata"]["name"], datetime.now(UTC)
    stack.sql.on_machine(bookie["spec"]["nodeName"], kill(bookie, "java"))
    return Span(f"the end of {name}", began, datetime.now(UTC))


def taken_away(stack: Stack, bookie: Object) -> Span:
    """When it was: its pod is gone, and no other one comes."""
    name, began = bookie["metadata"]["name"], datetime.now(UTC)
    stack.kubectl.run("scale", "statefulset", name.removesuffix("-0"), "--replicas=0")
    stack.kubectl.run("delete", "pod", name, "--grace-period=0", "--force", "--ignore-not-found")
    return Span(f"the end of {name}", began, datetime.now(UTC))


def require_in_the_middle(stack: Stack, audit: str, bookie: Object, fault: Span) -> None:
    """What was done to a bookie was done while an audit, which has ended now, was reading from it.

    The audit's log tells when its first pass began and ended, and of which bookies it then lacked something. Machines of the test
    cluster are containers of this one, so all of these times are of one clock.
    """
    log = log_of(stack, audit).splitlines()
    second = line_with(log, "second pass")
    first = Span(f"the first pass of {audit}", said_at(line_with(log, "planned")), said_at(second))
    say(f"{fault.what} from {fault.begin} to {fault.end}; {first.what} from {first.begin} to {first.end}")
    wrong = why_not_within(fault, first)
    assert wrong is None, wrong
    assert id_of(stack, bookie) in second, f"all that it has had been read before: {second}"


def in_flight(status: Object, before: Object) -> int:
    """How many copies are missing that truly are: of entries that the other two acknowledged when a bookie ended (ackQuorum 2), which
    are known before or lie behind what there was before."""
    known = {(finding["bookieId"], finding["firstEntry"]) for finding in before.get("findings", [])}
    missing = [finding for finding in status.get("findings", []) if finding["severity"] == "Pending" and finding["kind"] == "Missing"]
    assert all(found["firstEntry"] >= before["entries"] or (found["bookieId"], found["firstEntry"]) in known for found in missing), missing
    return sum(int(finding["lastEntry"]) - int(finding["firstEntry"]) + 1 for finding in missing)


def unknown(status: Object) -> list[tuple[str, str]]:
    """What could not be told, and of which bookie."""
    return [(finding["kind"], finding["bookieId"]) for finding in status.get("findings", []) if finding["severity"] == "Unknown"]


def id_of(stack: Stack, bookie: Object) -> str:
    """Of a bookie's pod."""
    bookies = stack.sql.get("bookkeepercluster", "bk")["status"]["bookies"]
    return str(next(each["bookieId"] for each in bookies if f"bk-bookie-{each['number']}-0" == bookie["metadata"]["name"]))


def require_truth(status: Object, before: Object) -> None:
    """Each copy is either whole, unknown or in truth missing, and counted once."""
    severities = {finding["severity"] for finding in status.get("findings", [])}
    assert severities <= {"Unknown", "Pending"}, status["findings"]
    assert status["replicas"] + status.get("replicasUnknown", 0) + in_flight(status, before) == COPIES * status["entries"]
    assert (unknown(status) == []) == (status.get("replicasUnknown", 0) == 0)


def test_a_bookie_that_is_killed_in_the_middle_of_a_deep_audit_lacks_nothing(stack: Stack) -> None:
    ledger = first_ledger(stack)["ledger"]
    whole = audited(stack.kubectl, "before-the-kill", ledgers=[ledger])
    assert whole["findingsTotal"] == 0

    declare_slow_audit(stack, "killed-meanwhile", ledger, whole)
    bookie = bookie_that_is_read(stack, "killed-meanwhile")
    fault = killed(stack, bookie)
    status = status_of(stack.kubectl, "replicationaudit", "killed-meanwhile")
    require_in_the_middle(stack, "killed-meanwhile", bookie, fault)
    assert status["entries"] >= whole["entries"]
    require_truth(status, whole)
    assert {bookie_id for _, bookie_id in unknown(status)} <= {id_of(stack, bookie)}, "the others went on serving"
    assert status.get("replicasUnknown", 0) < status["entries"], "some of it had been read before"
    say("all of it was read again" if unknown(status) == [] else f"not back in time: {status['findings']}")
    stack.wait_until_ready()


def test_what_a_bookie_that_stays_away_has_is_unknown_and_not_missing(stack: Stack) -> None:
    ledger = first_ledger(stack)["ledger"]
    before = audited(stack.kubectl, "before-it-goes", ledgers=[ledger])
    with stack.kubectl.paused("bookkeepercluster", "bk"):  # then the operator brings back what is away
        declare_slow_audit(stack, "gone-meanwhile", ledger, before)
        bookie = bookie_that_is_read(stack, "gone-meanwhile")
        fault = taken_away(stack, bookie)
        status = status_of(stack.kubectl, "replicationaudit", "gone-meanwhile")
        assert stack.kubectl.get("pod", bookie["metadata"]["name"]) is None
        require_in_the_middle(stack, "gone-meanwhile", bookie, fault)
    require_truth(status, before)
    assert unknown(status) == [("BookieUnreachable", id_of(stack, bookie))]
    # also what was read before: it can't be compared with the other copies any more
    assert 0 < status["replicasUnknown"] <= status["entries"]
    stack.wait_until_ready()

    status = audited(stack.kubectl, "back-again", ledgers=[ledger])
    require_truth(status, before)
    assert unknown(status) == []
