"""The bookies' other clients: what they report, where their pod finds its jars and the racks, and that their versions are the bookies'."""

from __future__ import annotations

import re

import pytest

from herdkeeper_e2e.client_report import ClientReport, ReportError, parse_report
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.history import Gap
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.ledger_clients import Bookies, Place
from herdkeeper_e2e.tools_pod import IDENTITY, OPERATOR_IDENTITY

GAPS = '[{"fault": "a disk lost", "seconds": 3.2, "unknown_rows": 16}]'


def test_a_report_is_read_with_its_gaps():
    line = f'{{"report": {{"acknowledged": 9, "tailed": 10, "read": 11, "gaps": {GAPS}, "violation": null}}}}\n'
    assert parse_report(line) == ClientReport(9, 10, 11, (Gap("a disk lost", 3.2, 16),), None)


def test_a_report_shows_its_counts_its_violation_and_its_gaps():
    shown = str(ClientReport(9, 10, 8, (Gap("a disk lost", 3.2, 16),), "1 of 9 acknowledged entries are missing"))
    assert shown.splitlines()[0] == "9 acknowledged, 10 followed, 8 read back: 1 of 9 acknowledged entries are missing"
    assert "3.20 s" in shown
    assert str(ClientReport(0, 0, 0, (), None)) == "0 acknowledged, 0 followed, 0 read back: nothing is missing"


@pytest.mark.parametrize(
    "line", ["no JSON", "command terminated with exit code 1", '{"acknowledged": 3}', '{"report": {"acknowledged": 3}}']
)
def test_what_is_no_report_is_refused_with_its_text(line: str):
    with pytest.raises(ReportError, match=re.escape(line[:20])):
        parse_report(line)


def test_the_pod_of_the_clients_has_the_bookies_jars_and_the_map_of_racks_and_small_requests():
    pod = Place(Kubectl("e2e", {})).pod()
    spec = pod.manifest()["spec"]
    (container,) = spec["containers"]
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes[mounted["/racks"]]["configMap"]["name"] == "bk-racks"
    assert volumes[mounted["/programs"]]["emptyDir"] == {}
    assert container["resources"]["requests"]["memory"] == "384Mi"
    assert "nodeName" not in spec
    assert pod.command("Main", "one")[-4:] == ("-cp", "/opt/bookkeeper/lib/*:/programs/*", "Main", "one")


def test_clients_of_other_bookies_or_on_another_machine_have_a_pod_of_their_own():
    places = [Place(Kubectl("e2e", {})), Place(Kubectl("e2e", {}), "growing"), Place(Kubectl("e2e", {}), machine="worker")]
    assert [place.pod().name for place in places] == ["clients-of-bk", "clients-of-growing", "clients-of-bk-worker"]
    assert places[2].pod().manifest()["spec"]["nodeName"] == "worker"


class TwoClusters(Kubectl):
    """kubectl of a cluster with bookies in plain text and others with certificates."""

    def get(self, kind: str, name: str) -> Object | None:
        port = {"plain": 2181, "guarded": 2281}[name]
        address = ",".join(f"zk-zookeeper-{number}.zk-zookeeper-members.e2e.svc:{port}" for number in range(3))
        root = f"/e2e/{name}/ledgers"
        return {"status": {"zooKeeperAddress": address, "ledgersRoot": root, "metadataServiceUri": f"zk+hierarchical://{address}{root}"}}


def test_clients_present_the_bookies_certificate_where_servers_ask_for_one():
    bookies = Bookies.of(TwoClusters("e2e", {}), "guarded")
    pod = Place(Kubectl("e2e", {})).pod(bookies.secrets)
    spec = pod.manifest()["spec"]
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    mounted = {mount["mountPath"]: secrets.get(mount["name"]) for mount in spec["containers"][0]["volumeMounts"]}
    assert (mounted[IDENTITY], mounted[OPERATOR_IDENTITY]) == ("guarded-bookie-identity", "zk-zookeeper-operator")
    command = pod.command("Main", options=bookies.options(OPERATOR_IDENTITY))
    assert {"-Dzookeeper.client.secure=true", "-DtlsKeyStore=/identity/tls.key"} <= set(command)
    assert "-Dzookeeper.ssl.keyStore.location=/operator-identity/keystore.pem" in command
    assert command[-1] == "Main"


def test_clients_of_bookies_in_plain_text_present_nothing():
    bookies = Bookies.of(TwoClusters("e2e", {}), "plain")
    assert (bookies.secrets, bookies.options(IDENTITY)) == ({}, ())


@pytest.mark.parametrize("name", ["bookkeeper.version", "netty.version"])
def test_the_clients_have_the_version_of_the_bookies_whose_jars_they_use(name: str):
    versions = {
        re.findall(f"<{name}>(.*)</{name}>", (REPOSITORY / path).read_text())[0]
        for path in ("e2e/clients/pom.xml", "images/bookkeeper/pom.xml")
    }
    assert len(versions) == 1
