"""Which findings of an audit the stops of bookies explain."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.missing_copies import LAG_SECONDS, UNANSWERED, Stops, beyond

STRIPED, PLAIN = 7, 8
ONE = Stops(1, 0, 10)


def finding(ledger: int, entries: int, severity: str = "UnderReplicated", **other: object) -> dict[str, object]:
    found = {"kind": "Missing", "repair": "Repaired", "severity": severity, "ledgerId": ledger, "firstEntry": 0, "lastEntry": entries - 1}
    return found | other


def told(stops: Stops, *findings: dict[str, object], copies: int | None = None) -> list[str]:
    written = sum(int(str(each["lastEntry"])) + 1 for each in findings) if copies is None else copies
    return list(beyond({"findings": list(findings), "replicasRepaired": written}, {STRIPED}, stops))


def test_what_was_in_flight_to_a_bookie_that_stopped_may_lack_a_copy():
    most = UNANSWERED + int(10 * LAG_SECONDS)
    assert told(ONE, finding(PLAIN, most)) == []
    assert told(ONE, finding(PLAIN, most + 1)) == [f"{most + 1} copies were missing: 1 stops explain {most}"]
    assert told(Stops(3, 0, 10), finding(PLAIN, 3 * most)) == []


def test_copies_count_that_the_first_findings_do_not_tell():
    assert told(ONE, finding(PLAIN, 1), copies=10_000) == ["10000 copies were missing: 1 stops explain 36"]


def test_a_bookie_that_is_silent_is_waited_for_while_the_others_acknowledge():
    assert told(Stops(1, 6, 10), finding(PLAIN, 60)) == []
    assert len(told(ONE, finding(PLAIN, 60))) == 1


def test_without_a_stop_no_copy_is_missing():
    nothing = Stops(0, 0, 100)
    assert told(nothing) == []
    assert told(nothing, finding(PLAIN, 1)) == ["1 copies were missing: 0 stops explain 0"]


def test_entries_of_striped_ledgers_alone_may_be_critical_and_no_more_than_their_client_had_in_flight():
    assert told(ONE, finding(STRIPED, UNANSWERED, "Critical")) == []
    (more,) = told(ONE, finding(STRIPED, UNANSWERED + 1, "Critical"))
    assert more == "17 acknowledged copies of striped ledgers were missing: 1 stops explain 16"
    (other,) = told(ONE, finding(PLAIN, 1, "Critical"))
    assert other.startswith("it is more than a copy of several that was under way")


@pytest.mark.parametrize("other", [{"repair": "Refused"}, {"kind": "CorruptDigest"}, {"severity": "Lost"}])
def test_whatever_else_an_audit_finds_is_told(other: dict[str, object]):
    assert len(told(ONE, finding(PLAIN, 1, **other))) == 1  # type: ignore[arg-type]


def test_critical_findings_count_for_which_the_status_has_no_room():
    status = {"findings": [finding(STRIPED, 1, "Critical")], "replicasRepaired": 20, "findingsBySeverity": {"critical": 20}}
    assert list(beyond(status, {STRIPED}, ONE)) == ["20 acknowledged copies of striped ledgers were missing: 1 stops explain 16"]


def test_racks_of_striped_ledgers_are_another_matter():
    assert told(ONE, finding(STRIPED, 5, "AtRisk", kind="TooFewRacks"), copies=0) == []
    assert len(told(ONE, finding(PLAIN, 5, "AtRisk", kind="TooFewRacks"), copies=0)) == 1
