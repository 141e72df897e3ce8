"""Which access the roots of a stack with certificates get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest
from situations import quickstart

from herdkeeper.certificates import roles
from herdkeeper.certificates.access import Access, Grant, Rights, RootAccess, herd_access, ledgers_access
from herdkeeper.certificates.roles import bookkeeper_holders, sql_nodes_holder
from herdkeeper.engine.execute_metadata import create_herd_root, format_ledgers_root
from herdkeeper.shared.names import ObjectKey

LOG, DATABASE = ObjectKey("demo", "bk"), ObjectKey("demo", "db")
BOTH = (ledgers_access(LOG), herd_access(DATABASE, "bk"))


def access_lists(access: RootAccess) -> list[Access]:
    return [*access.above.values(), *access.within.values()]


def rights(access: Access) -> dict[str, Rights]:
    return {grant.holder: grant.rights for grant in access}


def test_the_operator_may_do_everything_everywhere_and_nobody_else_changes_access() -> None:
    for access in BOTH:
        for listed in access_lists(access):
            assert listed[0] == Grant(roles.OPERATOR, Rights.ALL)
            assert not any(grant.rights & Rights.ADMIN for grant in listed[1:])


def test_who_is_granted_access_holds_a_certificate_with_that_subject() -> None:
    holders = (*bookkeeper_holders(quickstart("BookKeeperCluster")), sql_nodes_holder(quickstart("HerdDBCluster")))
    assert [holder.subject for holder in holders] == [roles.bookies("bk"), roles.readers("bk"), roles.sql_nodes("db", "bk")]
    assert Grant(roles.bookies("bk"), Rights.READ).holder == "OU=0:bk,CN=bookies.bk"


def test_only_names_of_databases_are_left_open() -> None:
    granted = {grant.holder for access in BOTH for listed in access_lists(access) for grant in listed}
    assert {holder for holder in granted if roles.ANY in holder} == {
        "OU=0:bk,CN=nodes.*",
        "OU=0:*,CN=nodes.bk",
        "OU=0:*,CN=nodes.db",
    }


def test_bookies_read_the_databases_records_and_readers_read_the_log() -> None:
    ledgers, herd = (access.within for access in BOTH)
    assert rights(herd["/demo/db/herd"])["OU=0:bk,CN=bookies.bk"] == Rights.READ
    assert {rights(listed)["OU=0:bk,CN=readers.bk"] for listed in ledgers.values()} == {Rights.READ}


class Founded:
    """Znodes that only note what is founded in them, in order."""

    def __init__(self) -> None:
        self.access: dict[str, Access] = {}
        self.made: list[str] = []

    def restrict(self, path: str, access: Access) -> None:
        self.access[path] = access

    def create_all(self, znodes: Iterable[tuple[str, bytes]], access: Mapping[str, Access]) -> None:
        self.made += [path for path, _ in znodes]
        assert set(self.made) == access.keys(), "a znode without an access of its own would get that of what is above the root"
        assert self.access, "what is above the root is guarded before the root is there"
        self.access.update(access)


@pytest.mark.parametrize(
    ("found", "root", "access"), [(format_ledgers_root, "/demo/bk/ledgers", BOTH[0]), (create_herd_root, "/demo/db/herd", BOTH[1])]
)
def test_a_root_is_founded_with_the_access_of_all_its_parts(found: Callable[..., None], root: str, access: RootAccess) -> None:
    znodes = Founded()
    found(znodes, root, access)
    assert znodes.made[0] == root
    assert znodes.access == {**access.above, **access.within}
