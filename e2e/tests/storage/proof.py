"""What each storage scenario ends with: the reader's proof, and an audit that finds nothing."""

from __future__ import annotations

from conftest import Stack, say
from load import Load
from runs import audited, of_ledgers
from under_load import lost_nothing

from herdkeeper_e2e.client_report import ClientReport
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.ledger_clients import LedgerClient
from herdkeeper_e2e.missing_copies import Stops, beyond


def both_lost_nothing(load: Load, silent_seconds: float = 0.0) -> Stops:
    """The same of the striped ledgers beside the writer, too, by the reader that followed them and by one that came at the end. Returns how
    many times bookies stopped under this load."""
    lost_nothing(load.writer)
    kept_all(load.striped)
    return load.stops.end(silent_seconds)


def kept_all(client: LedgerClient) -> ClientReport:
    """Both readers of a client of the bookies got every acknowledged entry, right and in order; prints the gaps."""
    report = client.proof()
    say(f"{report}")
    assert report.violation is None
    return report


def all_is_whole(load: Load, name: str, silent_seconds: float = 0.0) -> None:
    """Nothing is lost, the stack is Ready again, and has all copies."""
    stops = both_lost_nothing(load, silent_seconds)
    load.stack.wait_until_ready()
    made_whole(load.stack, name, stops)


def found_nothing(stack: Stack, name: str) -> Object:
    """The status of an audit of every copy of every entry of the quickstart's bookies."""
    return found_nothing_in(stack, "bk", name)


def found_nothing_in(stack: Stack, bookies: str, name: str) -> Object:
    """The same of the BookKeeperCluster `bookies`."""
    status = audited(stack.kubectl, name, bookKeeperRef={"name": bookies})
    assert _unexpected(stack, bookies, status) == []
    return status


def made_whole(stack: Stack, name: str, stops: Stops) -> None:
    """Has the entries copied that lack one copy, no more than these stops of bookies explain, and audits again.

    An entry is acknowledged by Aq = 2 of its Wq = 3 bookies. What was under way to the third when that one stopped stays without a third
    copy: BookKeeper replaces a bookie in its ledger from the first entry on that was not acknowledged. A repair works on closed ledgers, so
    a leader change closes the one that is written.

    Of striped ledgers entries that were acknowledged by both of their bookies may have one copy only: docs/limits.md tells of the client's
    fault. What lacks copies for another reason has none here: autorecovery has done its part before.
    """
    stack.sql.switch_over(stack.sql.other())
    repaired = audited(stack.kubectl, f"{name}-repaired", repair="Repair")
    say(f"{repaired['findingsTotal']} findings, {repaired.get('replicasRepaired', 0)} copies written")
    assert list(beyond(repaired, _striped(stack, "bk"), stops)) == []
    found_nothing(stack, name)


def _unexpected(stack: Stack, bookies: str, status: Object) -> list[Object]:
    """An audit's findings, but what is said of the racks of striped ledgers (of this scenario, or of one before): bookies of three zones
    have no ring of four or five in which neighbours are always parted. The most urgent findings are told first, and these are not."""
    findings: list[Object] = status.get("findings", [])
    if not any(finding["kind"] == "TooFewRacks" for finding in findings):
        assert len(findings) > 0 or status["findingsTotal"] == 0
        return findings
    striped = _striped(stack, bookies)
    return [finding for finding in findings if finding["kind"] != "TooFewRacks" or finding["ledgerId"] not in striped]


def _striped(stack: Stack, bookies: str) -> set[int]:
    """As the operator sees them: the pod's own certificate may be for other bookies."""
    return set(of_ledgers(stack, "striped_ledgers", stack.tools.as_operator(), bookies))
