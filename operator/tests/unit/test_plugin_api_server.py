"""The plugin's way to the API server: a port-forward through a websocket, as the API server speaks it, and what it says when it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from herdkeeper.plugin import api_server
from herdkeeper.plugin.api_server import Access, ApiServer
from herdkeeper.plugin.cluster import ClusterError, ConflictError, ForbiddenError, NoAnswerError
from herdkeeper.plugin.kinds import POD, SECRET, TABLESPACE

HANDSHAKE = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455, 4.2.2."""


class PlayedApiServer(BaseHTTPRequestHandler):
    """Answers each word that comes through a forwarded port in capitals. Lists two Tablespaces; refuses all else. `asked` are the paths."""

    protocol_version = "HTTP/1.1"
    timeout = 60  # a test that fails keeps its connection, and the server would never end
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if "portforward" in self.path:
            self._forward()
        elif "exec" in self.path and "gone" not in self.path:
            self._execute()
        elif self.path.endswith("/tablespaces") and "gone" not in self.path:
            self._answer(200, {"items": [{"metadata": {"name": name}} for name in ("orders", "flights")]})
        elif self.path.endswith("/pods/page"):
            self._text(b"<!DOCTYPE html>")
        elif "/log?" in self.path and "cut" in self.path:
            self._text(b"one\ntwo", missing=5)
        elif "/log?" in self.path:
            self._text(b"one\ntwo\nthree")
        elif (code := self.path.rpartition("/")[2]) in ("429", "503"):
            self._answer(int(code), {"message": "etcdserver: leader changed"})
        else:
            self._answer(404 if "gone" in self.path else 403, {"message": "pods is forbidden"})

    def do_PATCH(self) -> None:
        self.asked.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(409, {"message": "the object has been modified"})

    def _answer(self, code: int, document: dict) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _text(self, body: bytes, missing: int = 0) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + missing))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def _forward(self) -> None:
        """The protocol v4.channel.k8s.io: channel 0 is data, 1 errors, and each begins with its port."""
        self._shake_hands()
        for channel in (b"\0", b"\1"):
            self._send(channel + struct.pack("<H", 7000))
        while (data := self._receive()) is not None:
            self._send(data[:1] + data[1:].upper())
        self.close_connection = True

    def _execute(self) -> None:
        """Channel 1 is standard output, 2 standard error, 3 how the command ended. One that is cut off has not ended."""
        self._shake_hands()
        failed = "fails" in self.path
        for part in (b"one\n", b"two\n"):
            self._send(b"\1" + part)
        if failed:
            self._send(b"\2no such file\n")
        if "cut" not in self.path:
            self._send(b"\3" + json.dumps({"status": "Failure" if failed else "Success"}).encode())
        self.wfile.write(b"\x88\0")
        self.close_connection = True

    def _shake_hands(self) -> None:
        accept = base64.b64encode(hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + HANDSHAKE).digest())
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept.decode())):
            self.send_header(name, value)
        self.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
        self.end_headers()

    def _send(self, data: bytes) -> None:
        self.wfile.write(b"\x82" + bytes([len(data)]) + data)
        self.wfile.flush()

    def _receive(self) -> bytes | None:
        """The data of a short frame of the client's, which is masked; None at the end."""
        head = self.rfile.read(2)
        if len(head) < 2 or head[0] & 0x0F != 2:
            return None
        mask, data = self.rfile.read(4), self.rfile.read(head[1] & 0x7F)
        return bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Callable[..., ApiServer], list[str]]]:
    """Makes clients of the played API server, and the paths that were asked for."""
    asked: list[str] = []
    handler = type("Handler", (PlayedApiServer,), {"asked": asked})
    listening = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{listening.server_port}"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": "demo"}}],
        "current-context": "here",
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    yield lambda namespace=None: ApiServer(Access(namespace, kubeconfig=str(kubeconfig))), asked
    listening.shutdown()
    listening.server_close()


def test_a_pod_s_port_answers_at_a_port_of_this_machine(server) -> None:
    clients, asked = server
    with clients().forward("db-herddb-0", 7000) as port, socket.create_connection(("127.0.0.1", port), 60) as connection:
        for word in (b"select", b"more"):
            connection.sendall(word)
            assert connection.recv(100) == word.upper()
    assert asked == ["/api/v1/namespaces/demo/pods/db-herddb-0/portforward?ports=7000"]


def test_a_command_s_output_comes_whole_and_one_that_fails_or_is_cut_off_says_so(server) -> None:
    clients, asked = server
    assert clients().execute("zk-zookeeper-0", "zookeeper", "cat") == "one\ntwo\n"
    assert asked == [
        "/api/v1/namespaces/demo/pods/zk-zookeeper-0/exec?command=sh&command=-c&command=cat&container=zookeeper&stderr=True&stdin=False&stdout=True&tty=False"
    ]
    with pytest.raises(ClusterError, match="a command in the pod zk-zookeeper-0 failed: no such file"):
        clients().execute("zk-zookeeper-0", "zookeeper", "fails")
    with pytest.raises(ClusterError, match="a command in the pod zk-zookeeper-0 failed: it did not end"):
        clients().execute("zk-zookeeper-0", "zookeeper", "cut")
    with pytest.raises(ClusterError, match="no command can be run in the pod gone: "):
        clients().execute("gone", "zookeeper", "cat")


def test_objects_come_in_the_order_of_their_names_with_their_kind(server) -> None:
    clients, asked = server
    found = clients("other").list(TABLESPACE)
    assert [(item["kind"], item["metadata"]["name"]) for item in found] == [("Tablespace", "flights"), ("Tablespace", "orders")]
    assert asked == ["/apis/herdkeeper.io/v1alpha1/namespaces/other/tablespaces"]


def test_another_namespace_is_read_in_the_same_session(server) -> None:
    """Each session runs the command that gives credentials, and status --watch looks at two namespaces every two seconds."""
    clients, asked = server
    first = clients()
    other = first.in_namespace("other")
    assert other.api is first.api
    assert (first.namespace, other.namespace) == ("demo", "other")
    other.list(TABLESPACE)
    assert asked == ["/apis/herdkeeper.io/v1alpha1/namespaces/other/tablespaces"]


def test_what_is_not_there_is_none_and_a_refusal_is_told_in_the_api_server_s_words(server) -> None:
    clients, _ = server
    assert clients().get(POD, "gone") is None
    with pytest.raises(ForbiddenError, match="the API server refused GET /api/v1/namespaces/demo/pods/x: pods is forbidden"):
        clients().get(POD, "x")


@pytest.mark.parametrize("code", ["429", "503"])
def test_an_api_server_that_can_not_answer_now_has_refused_nothing(server, code: str) -> None:
    clients, _ = server
    with pytest.raises(NoAnswerError, match=f"the API server can't answer GET /api/v1/namespaces/demo/pods/{code} now: etcdserver: leader"):
        clients().get(POD, code)


def test_one_that_is_not_there_may_be_there_later(tmp_path: Path) -> None:
    path = Path(kubeconfig(tmp_path, "away", token="t"))
    path.write_text(path.read_text().replace("http://away.example.com", "http://127.0.0.1:9"))
    with pytest.raises(NoAnswerError, match=r"the API server at http://127.0.0.1:9 does not answer: "):
        ApiServer(Access(kubeconfig=str(path))).get(POD, "x")


def test_one_that_hangs_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Kubernetes client would repeat the request three times, and each attempt would wait as long."""
    monkeypatch.setattr(api_server, "ANSWER_SECONDS", (60, 0.2))
    path = Path(kubeconfig(tmp_path, "hangs", token="t"))
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        path.write_text(path.read_text().replace("http://hangs.example.com", f"http://127.0.0.1:{hanging.getsockname()[1]}"))
        with pytest.raises(NoAnswerError, match="does not answer: Read timed out"):
            ApiServer(Access(kubeconfig=str(path))).get(POD, "x")
        hanging.setblocking(False)
        hanging.accept()[0].close()
        with pytest.raises(BlockingIOError):
            hanging.accept()


def test_a_patch_of_an_earlier_version_is_a_conflict(server) -> None:
    clients, _ = server
    with pytest.raises(ConflictError, match="the object has been modified"):
        clients().patch(TABLESPACE, "flights", {"metadata": {"resourceVersion": "76"}}, dry_run=False)


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_unknown_field_is_to_be_refused_as_with_kubectl(server, dry_run: bool) -> None:
    clients, asked = server
    with pytest.raises(ConflictError):
        clients().patch(TABLESPACE, "flights", {"spec": {"replicsa": 3}}, dry_run=dry_run)
    assert ("fieldValidation=Strict" in asked[0], "dryRun=All" in asked[0]) == (True, dry_run)


def test_a_log_comes_line_by_line_also_where_its_last_line_has_no_end(server) -> None:
    clients, _ = server
    assert list(clients().lines(POD, "x", "log", [("tailLines", "3")])) == ["one", "two", "three"]


def test_another_namespace_is_asked_for_with_the_same_kubeconfig(server) -> None:
    clients, asked = server
    clients().in_namespace("herdkeeper-system").list(TABLESPACE)
    assert asked == ["/apis/herdkeeper.io/v1alpha1/namespaces/herdkeeper-system/tablespaces"]


def test_a_log_that_breaks_off_says_so(server) -> None:
    clients, _ = server
    with pytest.raises(ClusterError, match="GET /api/v1/namespaces/demo/pods/cut/log was interrupted"):
        list(clients().lines(POD, "cut", "log", [("tailLines", "3")]))


def test_an_api_server_without_the_kinds_is_told_so(server) -> None:
    clients, _ = server
    with pytest.raises(
        ClusterError,
        match=r"does not know tablespaces of herdkeeper.io/v1alpha1: install herdkeeper there, take the plugin of its version, or name",
    ):
        clients("gone").list(TABLESPACE)


def test_a_page_of_another_server_is_not_taken_for_an_answer(server) -> None:
    clients, _ = server
    with pytest.raises(ClusterError, match=r"what answers GET /api/v1/namespaces/demo/pods/page at http://.* is no API server: "):
        clients().get(POD, "page")


def kubeconfig(folder: Path, name: str, **user: object) -> str:
    """A file with a cluster, a user, and a context that is the current one, all of one name."""
    document = {
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}.example.com"}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "current-context": name,
    }
    (folder / name).write_text(yaml.safe_dump(document))
    return str(folder / name)


def test_of_several_kubeconfigs_the_first_one_s_context_counts_as_with_kubectl(tmp_path: Path) -> None:
    both = os.pathsep.join([kubeconfig(tmp_path, "staging"), kubeconfig(tmp_path, "production")])
    first, named = ApiServer(Access(kubeconfig=both)), ApiServer(Access(kubeconfig=both, context="production"))
    assert (first.api.configuration.host, first.namespace) == ("http://staging.example.com", "of-staging")
    assert (named.api.configuration.host, named.namespace) == ("http://production.example.com", "of-production")


def test_a_context_that_impersonates_somebody_is_not_used_with_the_rights_of_who_impersonates(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "viewer", **{"token": "t", "as": "a-viewer", "as-groups": ["viewers"]})
    with pytest.raises(ClusterError, match=r"the context viewer impersonates somebody \(as, as-groups\), which this plugin can't"):
        ApiServer(Access(kubeconfig=path)).list(TABLESPACE)


def test_the_end_of_a_line_is_no_part_of_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hush\n")
    path = kubeconfig(tmp_path, "staging", tokenFile=str(tmp_path / "token"))
    assert ApiServer(Access(kubeconfig=path)).api.configuration.api_key == {"authorization": "Bearer hush"}


@pytest.mark.parametrize("token", ["hush\nhush", "h\u00fcsh"])
def test_what_is_no_token_is_told_without_it(tmp_path: Path, token: str) -> None:
    with pytest.raises(ClusterError) as refused:
        ApiServer(Access(kubeconfig=kubeconfig(tmp_path, "staging", token=token))).list(TABLESPACE)
    told = "the token of the context staging has characters that no token has: look at the user in the kubeconfig"
    assert str(refused.value) == told


@pytest.mark.parametrize("command", ["there-is-no-such-command", "false"])
def test_a_command_that_gives_no_credentials_makes_nobody_anonymous(server, tmp_path: Path, command: str) -> None:
    _, asked = server
    how = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never"}
    with pytest.raises(ClusterError, match=f"the command `{command}` of the context staging gave no credentials"):
        ApiServer(Access(kubeconfig=kubeconfig(tmp_path, "staging", exec=how))).list(TABLESPACE)
    assert asked == []


def test_a_name_in_a_status_has_nothing_of_another_namespace_read(server) -> None:
    """Such as `status.connectionSecret`, whose login is sent to the pod that the same status names."""
    clients, asked = server
    assert clients().get(SECRET, "../../other/secrets/flights-connection") is None
    assert asked == []
