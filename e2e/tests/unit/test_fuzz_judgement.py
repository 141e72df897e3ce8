"""What contradicts the promises that clients were given."""

from __future__ import annotations

from herdkeeper_e2e.fuzz.judgement import Contents, Kind, Promises, differences, fenced_writers
from herdkeeper_e2e.fuzz.story import OUTSIDE, Sql


def _insert(tag: int, slot: int = OUTSIDE, table: str = "w") -> Sql:
    return Sql(slot, "INSERT", (), table, (tag,), adds=True)


def _there(*tags: int) -> Contents:
    return Contents.of({"w": [{"k": tag, "v": tag} for tag in tags]})


def _kinds(promises: Promises, contents: Contents) -> list[Kind]:
    return [violation.kind for violation in promises.judge("t", contents)]


def _accepted(*statements: Sql) -> Promises:
    promises = Promises()
    for statement in statements:
        promises.sent(statement)
        promises.accepted(statement)
    return promises


def test_an_acknowledged_row_must_be_there() -> None:
    promises = _accepted(_insert(1), _insert(2))
    assert _kinds(promises, _there(1, 2)) == []
    assert _kinds(promises, _there(2)) == [Kind.LOST]


def test_a_refused_row_must_not_be_there() -> None:
    promises = Promises()
    promises.refused(_insert(1), "DuplicateKey")
    assert _kinds(promises, _there()) == []
    assert _kinds(promises, _there(1)) == [Kind.UNDEAD]


def test_a_value_of_a_unique_index_belongs_to_one_row() -> None:
    def values(*given: int | None) -> Contents:
        return Contents.of({"p": [{"k": tag, "v": tag, "u": value} for tag, value in enumerate(given)]})

    assert _kinds(Promises(), values(1, 2, None, None)) == []
    assert _kinds(Promises(), values(1, 2, 1)) == [Kind.TWICE]


def test_rows_of_a_refused_insert_of_several_may_be_there_up_to_the_bad_one() -> None:
    promises = Promises()
    promises.refused(Sql(OUTSIDE, "INSERT", (), "w", (1, 2), adds=True), "DuplicateKey")
    assert _kinds(promises, _there(1)) == _kinds(promises, _there()) == []


def test_rows_of_a_transaction_are_promised_by_its_commit_alone() -> None:
    promises = Promises()
    promises.begin(1)
    promises.accepted(_insert(1, slot=1))
    assert _kinds(promises, _there()) == []
    promises.committed(1)
    assert _kinds(promises, _there()) == [Kind.LOST]


def test_rows_of_a_transaction_that_was_undone_must_not_be_there() -> None:
    promises = Promises()
    promises.begin(1)
    promises.accepted(_insert(1, slot=1))
    promises.undone(1, "it was rolled back")
    assert _kinds(promises, _there(1)) == [Kind.UNDEAD]


def test_rows_of_a_transaction_are_promised_by_an_alter_in_it_and_doubtful_after_one_that_failed() -> None:
    alter = Sql(1, "ALTER TABLE c ADD COLUMN e int", table="c")
    for ends, promised in ((Promises.accepted, [Kind.LOST]), (lambda promises, sent: promises.refused(sent, "no such column"), [])):
        promises = Promises()
        promises.begin(1)
        promises.accepted(_insert(1, slot=1))
        promises.sent(alter)
        ends(promises, alter)
        promises.undone(1, "it was rolled back")
        assert _kinds(promises, _there(1)) == []
        assert _kinds(promises, _there()) == promised


def test_rows_of_a_commit_without_an_answer_may_be_there_or_not() -> None:
    promises = Promises()
    promises.begin(1)
    promises.accepted(_insert(1, slot=1))
    promises.unknown(1)
    assert _kinds(promises, _there()) == _kinds(promises, _there(1)) == []


def test_a_row_may_be_gone_once_a_statement_was_sent_that_may_remove_it() -> None:
    promises = _accepted(_insert(1), _insert(2, table="p"))
    promises.begin(1)
    promises.accepted(_insert(3, slot=1))
    promises.sent(Sql(OUTSIDE, "TRUNCATE TABLE w", table="w", spoils=("w",)))
    promises.committed(1)
    assert _kinds(promises, _there(2)) == []
    assert _kinds(promises, _there()) == [Kind.LOST]


def _delete(slot: int = OUTSIDE) -> Sql:
    return Sql(slot, "DELETE FROM w", table="w", spoils=("w",))


def test_what_is_added_behind_a_delete_without_an_answer_may_be_gone_until_another_node_leads() -> None:
    promises = Promises(late=True)
    promises.sent(_delete())
    promises.unanswered(_delete())
    promises.accepted(_insert(1))
    promises.accepted(_insert(2, table="p"))
    assert set(promises.kept) == {2}
    promises.moved()
    promises.accepted(_insert(3))
    assert set(promises.kept) == {2, 3}


def test_so_may_be_what_is_added_behind_a_commit_without_an_answer_whose_transaction_has_deleted() -> None:
    promises = Promises(late=True)
    for slot in (1, 2):
        promises.begin(slot)
    promises.sent(_delete(1))
    promises.accepted(_insert(1, slot=2))
    promises.unknown(1)
    promises.committed(2)
    promises.accepted(_insert(2))
    assert promises.kept == {}


def test_a_client_whose_leaders_die_with_what_they_were_asked_has_no_such_doubts() -> None:
    promises = Promises()
    promises.unanswered(_delete())
    promises.accepted(_insert(1))
    assert set(promises.kept) == {1}


def test_differences_name_tables_and_rows() -> None:
    left = Contents.of({"w": [{"k": 1, "v": 1}, {"k": 2, "v": 2}], "p": []})
    right = Contents.of({"w": [{"k": 1, "v": 1}, {"k": 3, "v": 3}]})
    assert differences(left.tables, left.tables) == ""
    words = differences(left.tables, right.tables)
    assert "table p is missing" in words
    assert "w lacks 1 of 2 rows, [('k', 2), ('v', 2)]" in words
    assert "w has 1 besides, [('k', 3), ('v', 3)]" in words


_FENCED = "SEVERE: this server was fenced for tablespace t (0f) !"
_OPENED = "INFO: Tablespace t (0f), opened new ledger:12, expectedReplicaCount 1"
_LEADS = "INFO: startAsLeader node-0 tablespace t"


def test_a_leader_that_was_fenced_opens_no_ledger_until_it_leads_again() -> None:
    assert [str(found) for found in fenced_writers("node-0", [_FENCED, _OPENED])] == [
        "t: a leader that was fenced opened another ledger: node-0 opened and listed ledger 12"
    ]
    assert list(fenced_writers("node-0", [_OPENED, _FENCED, _LEADS, _OPENED])) == []
    assert list(fenced_writers("node-0", [_FENCED, _OPENED.replace("t (", "u (")])) == []


def test_a_ledger_that_is_not_listed_is_not_opened_whatever_herddb_says() -> None:
    unlisted = (
        "herddb.log.LogNotAvailableException: tablespace 0f: an entry was not written, so no ledger follows it",
        "herddb.log.LogNotAvailableException: the list of ledgers of tablespace 0f was changed by another process since version 2",
    )
    for words in unlisted:
        assert list(fenced_writers("node-0", [_FENCED, _OPENED, words])) == []
        later = _OPENED.replace("12", "13")
        assert len(list(fenced_writers("node-0", [_FENCED, _OPENED, later, words]))) == 1
        assert len(list(fenced_writers("node-0", [_FENCED, _OPENED, words.replace("0f", "0e")]))) == 1
