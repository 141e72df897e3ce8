"""`kubectl herdkeeper logs` and `connection`: what they show, and what they hide."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from played_cluster import PlayedCluster, called, condition, resource, stack

from herdkeeper.plugin.cluster import ClusterError
from herdkeeper.plugin.command import BadInputError
from herdkeeper.plugin.commands.logs import merged, since_seconds


def texts(**logs: list[str]) -> list[str]:
    return [f"{line.source} {line.text}" for line in merged(logs)]


def test_lines_stand_in_the_order_of_their_times_also_with_other_fractions_and_offsets() -> None:
    assert texts(
        a=["2026-11-21T14:30:00.12Z one", "2026-11-21T14:30:00.13Z four"],
        b=["2026-11-21T15:30:00.123+01:00 two", "2026-11-21T14:30:00.125999999Z three"],
    ) == ["a one", "b two", "b three", "a four"]


def test_a_line_without_a_time_stays_behind_the_one_before_it() -> None:
    logs = {"a": ["2026-11-21T14:30:00Z one", "  at Frame", "2026-11-21T14:30:09Z three"], "b": ["2026-11-21T14:30:05Z two"]}
    assert texts(**logs) == ["a one", "a   at Frame", "b two", "a three"]


def test_lines_of_one_container_never_change_places() -> None:
    assert texts(a=["2026-11-21T14:30:05Z one", "2026-11-21T14:30:04Z two"], b=["2026-11-21T14:30:04.5Z other"]) == [
        "b other",
        "a one",
        "a two",
    ]


class LoggedCluster(PlayedCluster):
    """Each pod's log is a line with its name; one's can't be read. `asked` are the queries."""

    def lines(self, kind, name, subresource, query) -> Iterator[str]:
        assert (kind.name, subresource) == ("Pod", "log")
        self.texts[name] = query
        if name == "bk-bookie-0-0":
            raise ClusterError("container is waiting to start")
        yield f"2026-11-21T14:30:0{len(self.texts)}Z I am {name}"


def logged() -> LoggedCluster:
    cluster = LoggedCluster(stack())
    for item in cluster.documents:
        if item["kind"] == "Pod":
            item["spec"]["containers"] = [{"name": "server"}]
    return cluster


def test_a_resource_without_pods_says_whose_pods_serve_it() -> None:
    answer, written = called(logged(), "logs", "tablespace/flights")
    assert written == []
    assert (
        answer.text
        == "Tablespace/flights has no pods, nor do the resources that depend on it; see `logs herddbcluster/db`, on which it rests"
    )


def test_of_a_resource_they_are_those_of_its_pods_and_of_all_that_rests_on_it() -> None:
    cluster = logged()
    _, written = called(cluster, "logs", "bkc/bk", "--since", "2h", "--tail", "7")
    assert sorted(cluster.texts) == ["bk-bookie-0-0", "db-herddb-0", "db-herddb-1"]
    assert written[0].endswith("bk-bookie-0-0 (no log: container is waiting to start)")
    assert written[1:] == ["2026-11-21T14:30:02Z db-herddb-0   I am db-herddb-0", "2026-11-21T14:30:03Z db-herddb-1   I am db-herddb-1"]
    assert cluster.texts["db-herddb-0"] == [("timestamps", "true"), ("sinceSeconds", "7200"), ("tailLines", "7"), ("container", "server")]


def test_without_a_resource_they_are_those_of_all_pods_and_a_container_is_named_where_a_pod_has_several() -> None:
    cluster = logged()
    cluster.documents[-1]["spec"] |= {"initContainers": [{"name": "move"}], "containers": [{"name": "server"}, {"name": "sidecar"}]}
    answer, _ = called(cluster, "logs")
    sources = {line["source"] for line in answer.document["lines"]}
    assert sources == {"zk-zookeeper-0", "bk-bookie-0-0", "db-herddb-0", "db-herddb-1/move", "db-herddb-1/server", "db-herddb-1/sidecar"}


@pytest.mark.parametrize(("written", "seconds"), [("30s", 30), ("10m", 600), ("2h", 7200), ("1d", 86400)])
def test_an_age_is_a_number_and_a_unit(written: str, seconds: int) -> None:
    assert since_seconds(written) == seconds


@pytest.mark.parametrize("words", [("--since", "yesterday"), ("--since", "0m"), ("--tail", "few")])
def test_bad_options_are_named_with_their_value(words: tuple[str, str]) -> None:
    with pytest.raises(BadInputError, match=f"{words[0]} {words[1]}: give a"):
        called(logged(), "logs", *words)


def secret(**entries: str) -> dict:
    data = {name.replace("_", "."): base64.b64encode(value.encode()).decode() for name, value in entries.items()}
    return {"kind": "Secret", "metadata": {"name": "flights-connection"}, "data": data}


def test_a_connection_is_shown_without_its_password_unless_it_is_asked_for() -> None:
    cluster = PlayedCluster([*stack(), secret(url="jdbc:herddb:x", user="admin", password="hush", ca_crt="a\nb\n")])
    for form in ("text", "json"):
        answer, _ = called(cluster, "connection", "flights", "-o", form)
        assert "hush" not in answer.text + str(answer.document)
        assert "jdbc:herddb:x" in answer.text
    assert "ca.crt    (2 lines of PEM)" in answer.text
    answer, _ = called(cluster, "connection", "flights", "--show-password")
    assert "password  hush" in answer.text
    assert answer.document["entries"]["password"] == "hush"


def test_of_a_secret_that_is_somebody_else_s_no_other_entry_is_shown_either() -> None:
    cluster = PlayedCluster([*stack(), secret(user="admin", tls_key="hush", token="hush")])
    answer, _ = called(cluster, "connection", "flights")
    assert "hush" not in answer.text + str(answer.document)
    assert "user     admin" in answer.text


def test_a_tablespace_without_a_connection_secret_says_why() -> None:
    restoring = resource("Tablespace", "new", conditions=[condition("Ready", "False", "Restoring", "7 of 9 rows")])
    with pytest.raises(ClusterError, match="the Tablespace new has no connection Secret: Restoring: 7 of 9 rows"):
        called(PlayedCluster([restoring]), "connection", "new")
