"""The API server for the plugin, with the rights of the caller: by kubeconfig or, in a pod, by its ServiceAccount.

The Kubernetes client is imported at the first request, since that takes longer than most commands. Its dynamic client, which the operator
uses, would first list all kinds.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from herdkeeper.plugin.cluster import ClusterError, ConflictError, ForbiddenError, NoAnswerError, Query
from herdkeeper.plugin.forward import listening
from herdkeeper.plugin.kinds import Kind
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

ANSWER_SECONDS = (5, 30)
"""For connecting, and for each piece of an answer."""
TOO_MANY_REQUESTS, SERVER_ERRORS = 429, 500
"""Status codes that say that another try may help: the first one, and those from the second one on."""
MERGE_PATCH = "application/merge-patch+json"
MOST_REASON = 300
"""Characters of a reason that nobody has made for people."""
_MESSAGE = re.compile(r'"message":\s*"((?:[^"\\]|\\.)*)"')
_CONNECTION = re.compile(r"^\w+\(host=[^)]*\): ")
"""How urllib3 begins: with the address again."""
_EXIT_CHANNEL = 3
"""Where the API server tells how a command ended."""
_FORBIDDEN = "Handshake status 403"


@dataclass(frozen=True)
class Access:
    """Which API server and namespace to use: by the options, or else the kubeconfig."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None


@dataclass(frozen=True)
class ApiServer:
    access: Access = field(default_factory=Access)

    @cached_property
    def _session(self) -> tuple[Any, str]:
        from herdkeeper.plugin.session import open_session

        return open_session(self.access)

    @property
    def namespace(self) -> str:
        return self.access.namespace or self._session[1]

    @property
    def api(self) -> Any:
        """The Kubernetes client for requests."""
        return self._session[0]

    def in_namespace(self, namespace: str) -> ApiServer:
        """See Cluster. Both have one session: the context's user may have a command that gives credentials."""
        other = ApiServer(replace(self.access, namespace=namespace))
        other.__dict__["_session"] = self._session
        return other

    def get(self, kind: Kind, name: str) -> Json | None:
        """See Cluster. A name that no object may have finds none: it may come from a status."""
        if not names.may_be_an_object(name):
            return None
        try:
            return {"apiVersion": kind.api_version, "kind": kind.name, **self._json("GET", kind.path(self.namespace, name))}
        except _NotFoundError:
            return None

    def list(self, kind: Kind) -> tuple[Json, ...]:
        query = [("labelSelector", kind.selector)] if kind.selector else []
        try:
            items = self._json("GET", kind.path(self.namespace), query=query).get("items") or []
        except _NotFoundError as error:
            raise ClusterError(
                f"the API server does not know {kind.plural} of {kind.api_version}: "
                "install herdkeeper there, take the plugin of its version, or name another cluster by --context or --kubeconfig"
            ) from error
        found = ({"apiVersion": kind.api_version, "kind": kind.name, **item} for item in items)
        return tuple(sorted(found, key=lambda item: str(item["metadata"]["name"])))

    def patch(self, kind: Kind, name: str, body: Json, *, dry_run: bool) -> Json:
        return self._json("PATCH", kind.path(self.namespace, name), query=_write_query(dry_run), body=body)

    def create(self, kind: Kind, document: Json, *, dry_run: bool) -> Json:
        return self._json("POST", kind.path(self.namespace), query=_write_query(dry_run), body=document)

    def delete(self, kind: Kind, name: str, uid: str | None = None, *, dry_run: bool = False) -> None:
        # the API server ignores options of the query where there is a body
        body = {**({} if uid is None else {"preconditions": {"uid": uid}}), **({"dryRun": ["All"]} if dry_run else {})}
        with contextlib.suppress(_NotFoundError):
            self._json("DELETE", kind.path(self.namespace, name), body=body)

    def lines(self, kind: Kind, name: str, subresource: str, query: Query) -> Iterator[str]:
        from urllib3.exceptions import HTTPError

        path = f"{kind.path(self.namespace, name)}/{subresource}"
        response = self._request("GET", path, query, None)
        rest = b""
        try:
            for chunk in response.stream(decode_content=True):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in whole)
        except HTTPError as error:
            raise ClusterError(f"GET {path} was interrupted: {error}") from error
        if rest:
            yield rest.decode(errors="replace")

    def execute(self, pod: str, container: str, script: str) -> str:
        from kubernetes import client
        from kubernetes.stream import stream

        # a client of its own: a stream changes the client while it runs
        core = client.CoreV1Api(client.ApiClient(self.api.configuration))
        options = {"container": container, "command": ["sh", "-c", script], "stdout": True, "stderr": True, "stdin": False, "tty": False}
        try:
            session = stream(core.connect_get_namespaced_pod_exec, pod, self.namespace, _preload_content=False, **options)
        except client.ApiException as error:
            raise stream_refused(f"no command can be run in the pod {pod}", str(error.reason)) from error
        session.run_forever(timeout=ANSWER_SECONDS[1])
        ended = not session.is_open()
        session.close()
        status = json.loads(session.read_channel(_EXIT_CHANNEL) or "{}") if ended else {}
        if status.get("status") != "Success":
            said = session.read_stderr().strip() or status.get("message") or f"it did not end within {ANSWER_SECONDS[1]} s"
            raise ClusterError(f"a command in the pod {pod} failed: {said}")
        return str(session.read_stdout())

    def forward(self, pod: str, port: int) -> AbstractContextManager[int]:
        from kubernetes import client
        from kubernetes.stream import portforward

        def dial() -> Any:
            # a client of its own: a stream changes the client while it runs
            core = client.CoreV1Api(client.ApiClient(self.api.configuration))
            try:
                return portforward(core.connect_get_namespaced_pod_portforward, pod, self.namespace, ports=str(port)).socket(port)
            except client.ApiException as error:
                raise stream_refused(f"no port of the pod {pod} can be forwarded", str(error.reason)) from error

        return listening(dial)

    def _json(self, method: str, path: str, *, query: Query | None = None, body: Json | None = None) -> Json:
        response = self._request(method, path, query or [], body)
        try:
            return cast(Json, dict(json.loads(response.data)))
        except (ValueError, TypeError) as error:
            host = self.api.configuration.host
            raise ClusterError(
                f"what answers {method} {path} at {host} is no API server: name another by --context or --kubeconfig"
            ) from error

    def _request(self, method: str, path: str, query: Query, body: Json | None) -> Any:
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        headers = {"Accept": "application/json, */*", "Content-Type": MERGE_PATCH if method == "PATCH" else "application/json"}
        try:
            return self.api.call_api(
                path,
                method,
                query_params=query,
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=ANSWER_SECONDS,
            )
        except ApiException as error:
            if error.status == 404 and method in ("GET", "DELETE"):
                raise _NotFoundError(f"{method} {path}: {_refusal_message(error)}") from error
            if error.status == TOO_MANY_REQUESTS or error.status >= SERVER_ERRORS:
                raise NoAnswerError(f"the API server can't answer {method} {path} now: {_refusal_message(error)}") from error
            kinds = {("PATCH", 409): ConflictError, ("DELETE", 409): ConflictError, (method, 403): ForbiddenError}
            raise kinds.get((method, error.status), ClusterError)(
                f"the API server refused {method} {path}: {_refusal_message(error)}"
            ) from error
        except HTTPError as error:
            host, why = self.api.configuration.host, _CONNECTION.sub("", str(getattr(error, "reason", error)))
            raise NoAnswerError(
                f"the API server at {host} does not answer: {why}. If it is not the one you mean, name another by --context or --kubeconfig"
            ) from error


def stream_refused(what: str, reason: str) -> ClusterError:
    """What is not possible, and why. `reason` is what the WebSocket client says: a status, headers, and the API server's answer."""
    # the answer is the text of bytes, which has each backslash twice
    answer = _MESSAGE.search(reason.replace("\\\\", "\\"))
    said = answer[1].replace('\\"', '"') if answer else reason[:MOST_REASON]
    kind = ForbiddenError if reason.startswith(_FORBIDDEN) else ClusterError
    return kind(f"{what}: {said}")


class _NotFoundError(ClusterError):
    """The object or kind does not exist."""


def _write_query(dry_run: bool) -> Query:
    """Has the API server refuse unknown fields, as kubectl does. By default it leaves them out and says nothing."""
    return [("fieldValidation", "Strict"), *([("dryRun", "All")] if dry_run else [])]


def _refusal_message(error: Any) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"{error.status} {error.reason}"
