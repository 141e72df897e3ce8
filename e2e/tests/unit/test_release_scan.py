"""`make scan` asks about each package by the name that advisories have for it, and shows what nobody has judged."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from herdkeeper_e2e.release.packages import packages
from herdkeeper_e2e.release.sbom import document
from herdkeeper_e2e.release.scan import Asked, Contents, Finding, Osv, ScanError, asked, contents, findings, judged, read_documents, report
from herdkeeper_e2e.release.source import REPOSITORY, own_architecture

NETTY = Asked("Maven", "io.netty:netty-codec", "4.1.107.Final")
GLIBC = Asked("Debian:12", "glibc", "2.36-9+deb12u13")
KAZOO = Asked("PyPI", "kazoo", "2.11.0")
HELD = Contents({NETTY: frozenset({"herddb"}), GLIBC: frozenset({"herddb", "operator"}), KAZOO: frozenset({"operator"})}, {"herddb": 3})
ADVISORIES = {
    "GHSA-1": {
        "aliases": ["CVE-2025-1"],
        "affected": [
            {"package": {"ecosystem": "Maven", "name": "io.netty:other"}, "ranges": [{"events": [{"fixed": "9"}]}]},
            {
                "package": {"ecosystem": "Maven", "name": "io.netty:netty-codec"},
                "ranges": [{"events": [{"introduced": "0"}, {"fixed": "4.1.125.Final"}]}],
            },
        ],
    },
    "GHSA-2": {"withdrawn": "2025-01-01T00:00:00Z"},
    "DEBIAN-CVE-2019-9": {"upstream": ["CVE-2019-9"], "affected": [{"package": {"ecosystem": "Debian:12", "name": "glibc"}}]},
}
NETTYS = Finding(NETTY, "GHSA-1", ("CVE-2025-1",), ("4.1.125.Final",))
DEBIANS = Finding(GLIBC, "DEBIAN-CVE-2019-9", ("CVE-2019-9",))


class PlayedDatabase(ThreadingHTTPServer):
    """Answers as osv.dev does: netty has two advisories on two pages, glibc one."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.asked: list[dict[str, object]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answers(BaseHTTPRequestHandler):
    server: PlayedDatabase

    def do_POST(self) -> None:
        queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        self.server.asked += queries
        self._answer({"results": [self._result(query) for query in queries]})

    def do_GET(self) -> None:
        self._answer(ADVISORIES[self.path.rpartition("/")[2]])

    def _result(self, query: dict[str, dict[str, str]]) -> dict[str, object]:
        match query["package"]["name"], query.get("page_token"):
            case "io.netty:netty-codec", None:
                return {"vulns": [{"id": "GHSA-1"}], "next_page_token": "more"}
            case "io.netty:netty-codec", _:
                return {"vulns": [{"id": "GHSA-2"}]}
            case "glibc", _:
                return {"vulns": [{"id": "DEBIAN-CVE-2019-9"}]}
            case _:
                return {}

    def _answer(self, told: object) -> None:
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def database() -> Iterator[PlayedDatabase]:
    with PlayedDatabase() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("pkg:pypi/kazoo@2.11.0", KAZOO),
        ("pkg:maven/io.netty/netty-codec@4.1.107.Final", NETTY),
        ("pkg:deb/debian/libc6@2.36-9%2Bdeb12u13?arch=amd64&distro=debian-12&upstream=glibc%402.36-9%2Bdeb12u13", GLIBC),
        ("pkg:deb/debian/libc6@2.36?distro=debian-99", None),
        ("pkg:golang/example.com/x@1", None),
    ],
)
def test_a_package_is_asked_about_by_the_name_that_advisories_have(url, package):
    assert asked(url) == package


def test_the_lists_of_images_tell_what_is_asked_about():
    status = b"Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nSource: glibc (2.36-9+deb12u13)\nVersion: 1:2\n"
    listed = document("herdkeeper/operator", "1", packages([("var/lib/dpkg/status", status)]), 7)
    assert contents({"operator": listed, "herddb": listed}) == Contents({GLIBC: frozenset({"operator", "herddb"})}, {})


def test_a_jar_without_a_name_is_counted_as_not_looked_up():
    assert contents({"spark": json.dumps({"components": [{"name": "x.jar"}]})}).nameless == {"spark": 1}


def test_all_pages_of_an_answer_are_read_and_withdrawn_advisories_left_out(database):
    assert findings(Osv(database.address), HELD.holders) == [DEBIANS, NETTYS]
    assert {"package": {"ecosystem": "PyPI", "name": "kazoo"}, "version": "2.11.0"} in database.asked


def test_a_database_that_does_not_answer_is_told_by_its_address(database):
    database.shutdown()
    database.server_close()
    with pytest.raises(ScanError, match=rf"{database.address}/v1/querybatch could not be asked"):
        findings(Osv(database.address), HELD.holders)


def test_what_nobody_has_judged_is_shown_with_its_images_and_the_fix():
    nothing_left, page = report([DEBIANS, NETTYS], HELD, frozenset())
    assert not nothing_left
    assert "herddb  io.netty:netty-codec  4.1.107.Final  GHSA-1,CVE-2025-1  4.1.125.Final" in page
    assert "1 more are Debian's" in page
    assert "jars of herddb 3" in page


def test_what_a_person_has_judged_fails_no_scan():
    nothing_left, page = report([NETTYS], HELD, judged("| Advisory | Why |\n|---|---|\n| CVE-2025-1 | no such port |\n"))
    assert nothing_left
    assert "0 advisories to judge, 1 named" in page


def test_only_the_first_column_of_a_table_judges():
    assert judged("CVE-2025-2\n| a | CVE-2025-3 |\n| [CVE-2025-4](x), GHSA-aa-bb | y |\n") == {"CVE-2025-4", "GHSA-aa-bb"}


def test_a_missing_list_is_named(tmp_path):
    with pytest.raises(ScanError, match=rf"operator-0\.2\.0-{own_architecture()}\.cdx\.json"):
        read_documents(tmp_path, "0.2.0")


def test_the_page_of_judgements_is_there():
    assert judged((REPOSITORY / "docs/known-vulnerabilities.md").read_text())
