"""A SQL node whose pod says that its HTTP port speaks TLS is verified before it is sent anything. It is never sent plain text."""

from __future__ import annotations

import base64
import http.client
import itertools
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from followed_lines import followed
from kubernetes.client import ApiException
from situations import objects, pods
from test_plan_herddb import CLUSTER, PODS

from herdkeeper.clients import bounded_http
from herdkeeper.clients.bounded_http import Question, TooLargeError, Trust, ask, follow
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.http import JsonReader
from herdkeeper.clients.kubernetes import KubernetesReader, WatchedSource
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.herddb.execute.node_orders import NodeOrders, SqlNodes
from herdkeeper.herddb.observe.address import NodePort, port_of_node, with_authorities
from herdkeeper.herddb.observe.nodes import read_nodes
from herdkeeper.herddb.state.tls import http_secret
from herdkeeper.planning.actions import WakeNodes
from herdkeeper.process.node_streams import open_stream
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import Unknown

CERTIFICATES = Path(__file__).parents[3] / "images/herddb/src/test/resources/tls"
NODE = PODS[0]
NAME = CLUSTER.names.host_of(NODE)
STATEFUL_SET = CLUSTER.names.stateful_set
OURS = {"metadata": {"name": STATEFUL_SET, "uid": "ours"}, "spec": {"replicas": 1}}
LONG, SHORT = 120.0, 0.3
OK = b"HTTP/1.1 200 OK\r\n"
EMPTY_LIST = OK + b"Content-Length: 2\r\n\r\n[]"
Behaviour = Callable[[socket.socket], None]


def authority(name: str = "authority.crt") -> str:
    return (CERTIFICATES / name).read_text()


class Node:
    """The HTTP port of one node. `got` is what it was sent after the handshake."""

    def __init__(self, ends: ExitStack, behave: Behaviour, certificate: str, newest: ssl.TLSVersion) -> None:
        self.got: list[bytes] = []
        self._behave = behave
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.maximum_version = newest
        self._context.load_cert_chain(CERTIFICATES / certificate, CERTIFICATES / "node-pkcs8.key")
        self._listening = ends.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port = self._listening.getsockname()[1]
        accepting = threading.Thread(target=self._accept, daemon=True)
        accepting.start()
        ends.callback(accepting.join)  # before the socket is closed: it could accept on the next one with its number
        ends.callback(self._listening.shutdown, socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(connection, server_side=True) as encrypted:
            self.got.append(encrypted.recv(4096))
            self._behave(encrypted)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Node]]:
    """Starts a node, which may answer as late as the machine lets it."""
    monkeypatch.setattr("herdkeeper.clients.http.ANSWER_SECONDS", LONG)
    monkeypatch.setattr("herdkeeper.herddb.execute.node_orders.WAKE_SECONDS", LONG)
    with ExitStack() as ends:

        def serve(behave: Behaviour, certificate: str = "node.crt", newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Node:
            node = Node(ends, behave, certificate, newest)
            monkeypatch.setattr(names, "HERDDB_HTTP_PORT", node.port)
            return node

        yield serve


def answering(answer: bytes) -> Behaviour:
    return lambda connection: connection.sendall(answer)


def pod(*arguments: str, secret: str | None = "db-tls", name: str = NODE) -> dict[str, Any]:
    """A node's pod at this machine's address."""
    (made,) = pods([name]).values()
    owner = {"kind": "StatefulSet", "name": STATEFUL_SET, "uid": "ours", "controller": True}
    volumes = [{"name": "tls", "secret": {"secretName": secret}}] if secret else []
    return {
        **made,
        "metadata": {**made["metadata"], "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "herddb", "args": ["--node-id", name, *arguments]}], "volumes": volumes},
        "status": {**made["status"], "podIP": "127.0.0.1"},
    }


class Kubernetes:
    """The database, its token, its node, and the Secret with the authorities."""

    def __init__(self, authorities: str | Exception | None, node: dict[str, Any] | None = None) -> None:
        self.authorities = authorities
        self.node = node or pod("--http-certificate", "/tls")
        self.read: list[ObjectKey] = []

    def readable(self, *_: object) -> object:
        return CLUSTER

    def secret(self, _key: ObjectKey) -> dict[str, str]:
        return {"token": "a-token"}

    def recent_secret(self, key: ObjectKey) -> dict[str, str] | None:
        self.read.append(key)
        if isinstance(self.authorities, Exception):
            raise self.authorities
        return None if self.authorities is None else {"ca.crt": self.authorities}

    def document(self, _version: str, kind: str, key: ObjectKey) -> object:
        return {("Pod", NODE): self.node, ("StatefulSet", STATEFUL_SET): OURS}[kind, key.name]

    @property
    def objects(self) -> Any:
        return objects({("Pod", NODE): self.node, ("StatefulSet", STATEFUL_SET): OURS})


def looked(kubernetes: Kubernetes) -> object:
    return read_nodes(CLUSTER, kubernetes.objects, ClusterReader(kubernetes, None, JsonReader()))[NODE]  # type: ignore[arg-type]


def waked(kubernetes: Kubernetes) -> None:
    SqlNodes("demo", ClusterReader(kubernetes, None, None), NodeOrders()).wake(WakeNodes("db", (NODE,)))  # type: ignore[arg-type]


def test_a_node_is_verified_by_its_name_at_its_pod_s_address_and_asked_and_ordered_over_tls(serve) -> None:
    node, kubernetes = serve(answering(EMPTY_LIST)), Kubernetes(authority())
    assert looked(kubernetes) == ()
    waked(kubernetes)
    asked, ordered = node.got
    assert asked.startswith(b"GET /tablespaces HTTP/1.1\r\n")
    assert ordered.startswith(b"POST /activator/wake HTTP/1.1\r\n")
    assert b"Bearer a-token" in ordered
    assert set(kubernetes.read) == {ObjectKey("demo", "db-tls")}


@pytest.mark.parametrize(
    ("certificate", "authorities", "told"),
    [
        ("node.crt", authority("stranger.crt"), "unable to get local issuer certificate"),
        ("expired.crt", authority(), "certificate has expired"),
        ("node.crt", None, "the Secret db-tls, by which the HTTP port of .* is verified, has no ca.crt"),
        ("node.crt", ApiException(status=500, reason="no quorum"), "the Secret db-tls, .* can't be read: .*no quorum"),
        ("node.crt", "no certificate", "none was found"),
    ],
    ids=["another authority", "expired", "no authorities", "Kubernetes does not answer", "damaged authorities"],
)
def test_a_node_that_can_not_be_verified_is_sent_nothing_and_told_of(serve, certificate, authorities, told) -> None:
    node, kubernetes = serve(answering(EMPTY_LIST), certificate), Kubernetes(authorities)
    found = looked(kubernetes)
    assert isinstance(found, Unknown)
    assert re.search(told, found.why), found.why
    waked(kubernetes)
    assert node.got == []
    with pytest.raises(ssl.SSLError):
        open_stream(kubernetes, port_of_node(CLUSTER.names, kubernetes.objects, NODE))


def test_a_pod_of_another_node_is_not_taken_for_this_one(serve) -> None:
    node, kubernetes = serve(answering(EMPTY_LIST)), Kubernetes(authority())
    address = with_authorities(NodePort("127.0.0.1", "db-zookeeper-0.elsewhere.demo.svc", ObjectKey("demo", "db-tls")), kubernetes)
    found = JsonReader().get(address.url("/tablespaces"), address.trust)
    assert isinstance(found, Unknown)
    assert "Hostname mismatch" in found.why
    assert node.got == []


def test_no_older_tls_is_spoken(serve) -> None:
    node = serve(answering(EMPTY_LIST), newest=ssl.TLSVersion.TLSv1_2)
    assert isinstance(looked(Kubernetes(authority())), Unknown)
    assert node.got == []


def test_a_node_that_answers_in_plain_text_gets_no_token_if_its_pod_says_tls(monkeypatch) -> None:
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setattr(names, "HERDDB_HTTP_PORT", listening.getsockname()[1])

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        got.append(connection.recv(4096))
                        connection.sendall(EMPTY_LIST)

        threading.Thread(target=accept, daemon=True).start()
        kubernetes = Kubernetes(authority())
        assert isinstance(looked(kubernetes), Unknown)
        waked(kubernetes)
        listening.shutdown(socket.SHUT_RDWR)
    assert got
    assert not any(b"HTTP" in each or b"token" in each for each in got)


def test_a_pod_without_the_argument_is_asked_in_plain_text_even_if_it_mounts_a_certificate_for_sql() -> None:
    before = pod()
    assert http_secret(before) is None
    address = with_authorities(port_of_node(CLUSTER.names, Kubernetes(None, before).objects, NODE), Kubernetes(None, before))
    assert (address.url("/alive"), address.trust) == ("http://127.0.0.1:9845/alive", None)


def test_a_pod_that_says_tls_and_mounts_no_certificate_is_not_asked() -> None:
    kubernetes = Kubernetes(authority(), pod("--http-certificate", "/tls", secret=None))
    found = looked(kubernetes)
    assert isinstance(found, Unknown)
    assert "mounts no Secret" in found.why


@pytest.mark.parametrize(("url", "trust"), [("http://127.0.0.1:1/", Trust(authority(), NAME)), ("https://127.0.0.1:1/", None)])
def test_scheme_and_trust_go_together(url, trust) -> None:
    with pytest.raises(ValueError, match="is to be asked with"):
        ask(Question("GET", url, LONG, {}, trust=trust))


def dripping(begin: bytes) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        connection.sendall(begin)
        for _ in itertools.count():
            connection.sendall(b" ")
            threading.Event().wait(SHORT / 10)

    return behave


def url_of(node: Node) -> str:
    return f"https://127.0.0.1:{node.port}/alive"


def test_a_node_that_drips_its_answer_is_given_up_when_the_time_of_the_whole_is_over(serve) -> None:
    node = serve(dripping(OK + b"\r\n"))
    with pytest.raises(TimeoutError):
        ask(Question("GET", url_of(node), SHORT, {}, trust=Trust(authority(), NAME)))


def test_a_node_that_never_shakes_hands_is_given_up_as_silence_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        ask(Question("GET", f"https://127.0.0.1:{silent.getsockname()[1]}/", SHORT, {}, trust=Trust(authority(), NAME)))


def test_an_answer_without_end_is_given_up_at_its_most_bytes(serve, monkeypatch) -> None:
    monkeypatch.setattr(bounded_http, "MOST_BYTES", 1 << 20)

    def endless(connection: socket.socket) -> None:
        connection.sendall(OK + b"\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    node = serve(endless)
    with pytest.raises(TooLargeError):
        ask(Question("GET", url_of(node), LONG, {}, trust=Trust(authority(), NAME)))


def test_an_answer_that_ends_early_is_no_answer(serve) -> None:
    node = serve(answering(OK + b"Content-Length: 9\r\n\r\n[]"))
    with pytest.raises(http.client.IncompleteRead):
        ask(Question("GET", url_of(node), LONG, {}, trust=Trust(authority(), NAME)))


def test_each_line_of_a_stream_comes_as_it_is_told_until_it_ends(serve) -> None:
    heard = threading.Event()

    def tell(connection: socket.socket) -> None:
        connection.sendall(OK + b"\r\nalive 1\nalive 2\nali")
        heard.wait(LONG)
        connection.sendall(b"ve 3\nalive 4")

    node = serve(tell)
    with closing(follow(url_of(node), LONG, Trust(authority(), NAME))) as stream:
        told = followed(stream)
        assert [next(told), next(told)] == [b"alive 1\n", b"alive 2\n"]
        heard.set()
        assert next(told) == b"alive 3\n"
        with pytest.raises(ConnectionError):
            next(told)
    assert node.got == [b"GET /alive HTTP/1.0\r\n\r\n"]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 503 Service Unavailable\r\n\r\nalive\n", b"nonsense\r\n\r\nalive\n"])
def test_a_stream_that_is_refused_has_no_line(serve, answer) -> None:
    with (
        closing(follow(url_of(serve(answering(answer))), LONG, Trust(authority(), NAME))) as stream,
        pytest.raises(http.client.HTTPException),
    ):
        next(followed(stream))


@pytest.mark.parametrize("begin", [OK, OK + b"\r\n"], ids=["head", "line"])
def test_a_line_without_end_is_given_up_at_its_most_bytes(serve, begin) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(begin)
        while True:
            connection.sendall(b"x" * 65536)

    with closing(follow(url_of(serve(endless)), LONG, Trust(authority(), NAME))) as stream, pytest.raises(TooLargeError):
        next(followed(stream))


class Live:
    """The API server, which counts who asks. Of the Secrets only what the operator made is watched."""

    def __init__(self, **secrets: str) -> None:
        self.secrets = secrets
        self.asked: list[str] = []

    def get(self, _version: str, _kind: str, key: ObjectKey) -> dict[str, Any] | None:
        self.asked.append(key.name)
        content = self.secrets.get(key.name)
        return None if content is None else secret(key.name, content)


def secret(name: str, content: str, version: int = 1) -> dict[str, Any]:
    metadata = {"namespace": "demo", "name": name, "resourceVersion": str(version)}
    return {"kind": "Secret", "metadata": metadata, "data": {"ca.crt": base64.b64encode(content.encode()).decode()}}


def test_authorities_of_the_operator_are_those_that_the_watch_told_and_others_are_read_once_in_a_while_and_again_if_missing() -> None:
    cache, live = ObjectCache(), Live(theirs="theirs")
    cache.put(secret("ours", "before"))
    cache.set_complete("Secret", complete=True)
    reader = KubernetesReader(WatchedSource(cache, live))
    cache.put(secret("ours", "ours", 2))
    found = [reader.recent_secret(ObjectKey("demo", name)) for name in ("ours", "theirs", "theirs", "later")]
    assert found == [{"ca.crt": "ours"}, {"ca.crt": "theirs"}, {"ca.crt": "theirs"}, None]
    live.secrets["later"] = "later"
    assert reader.recent_secret(ObjectKey("demo", "later")) == {"ca.crt": "later"}
    assert live.asked.count("ours") == 0
    assert live.asked.count("theirs") == 1


def test_authorities_that_are_read_as_they_are_now_are_those_that_verify_from_then_on() -> None:
    cache, live = ObjectCache(), Live(theirs="before")
    reader = KubernetesReader(WatchedSource(cache, live))
    key = ObjectKey("demo", "theirs")
    assert reader.recent_secret(key) == {"ca.crt": "before"}
    live.secrets["theirs"] = "now"
    assert reader.recent_secret(key) == {"ca.crt": "before"}
    assert reader.secret(key) == {"ca.crt": "now"}
    assert reader.recent_secret(key) == {"ca.crt": "now"}
