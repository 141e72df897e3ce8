"""Writes to the Kubernetes API. Each write is counted."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import structlog
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from urllib3.exceptions import HTTPError

from herdkeeper.api.resource import API_VERSION, Resource
from herdkeeper.certificates.authority import AUTHORITY_ENTRIES
from herdkeeper.clients.counters import WRITES
from herdkeeper.clients.kubernetes import ANSWER_SECONDS, LiveSource, as_sent
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.planning.actions import AddToSecret, Annotate, AnswerRequest, Apply, Create, Delete, Resize, SetAuthority
from herdkeeper.planning.intent import difference
from herdkeeper.planning.status import stored_status
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json, is_made_for
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of_now

STATUS_MANAGER = f"{names.MANAGER}-status"
APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
INVALID = 422
"""HTTP status for an object that would be invalid."""
_NAMESPACE_TERMINATING = '"reason":"NamespaceTerminating"'
"""The cause in the API server's answer, as Kubernetes writes it."""
_UNDECLARED = "field not declared in schema"
"""In the API server's answer to an apply."""

logger = structlog.get_logger()


class RefusedError(Exception):
    """An action's precondition does not hold, or the API server refused it. The message is a sentence."""


class NamespaceTerminatingError(RefusedError):
    """The API server refused a new object, since its namespace is being deleted. A retry can't succeed."""


class ChangedAtOnceError(RefusedError):
    """The API server took an object, and keeps another one."""


class KubernetesWriter:
    """Writes with one client, and to the cache at once. Every method but `event` raises RefusedError if the API server refuses."""

    def __init__(self, client: DynamicClient, cache: ObjectCache | None = None) -> None:
        self._client = client
        self._live = LiveSource(client)
        self._cache = cache or ObjectCache()

    def apply(self, action: Apply) -> None:
        """Apply the full intent server-side, and take over fields that others changed. Never adopts an unrelated object. Raises
        ChangedAtOnceError if it does not stay so: it would be applied for ever.
        """
        manifest = action.manifest
        kind, key = manifest["kind"], _key(manifest)
        if action.new:
            self._require_no_stranger(manifest)
        try:
            answer = self._applied(manifest)
        except RefusedError as error:
            if action.new or not (isinstance(error.__cause__, ApiException) and error.__cause__.status == INVALID):
                raise
            self._overwrite(manifest, error)
            answer = self._applied(manifest)
        if answer["kind"] == kind and (field := difference(manifest, answer)) is not None:
            raise ChangedAtOnceError(
                f"{field} of {kind} {key.name} is not as it was just applied, so something changes it each time, such as a mutating "
                "webhook: exempt the objects of herdkeeper from that"
            )

    def _applied(self, manifest: Json) -> Json:
        kind, path = manifest["kind"], self._path(manifest["apiVersion"], manifest["kind"], _key(manifest))
        manager = {"field_manager": names.MANAGER, "force_conflicts": True}
        return self._request("patch", path, kind, body=manifest, content_type=APPLY_PATCH, **manager)

    def _overwrite(self, manifest: Json, refused: RefusedError) -> None:
        """Write the intent over what others changed, where it is invalid beside that: such as a port of the same name. This owns no field
        then, so that a later apply can take away what it wrote.
        """
        version, kind, key = manifest["apiVersion"], manifest["kind"], _key(manifest)
        try:
            written = self._merge(version, kind, key, manifest)
        except RefusedError:
            raise refused from refused.__cause__  # the intent itself is invalid
        owners = written["metadata"].get("managedFields") or []
        others = [each for each in owners if (each.get("manager"), each.get("operation")) != (names.MANAGER, "Update")]
        self._merge(version, kind, key, {"metadata": {"managedFields": others}})

    def create(self, action: Create) -> None:
        """POST. An existing object of this name is an error."""
        manifest = action.manifest
        resource = self._client.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
        path = resource.path(namespace=manifest["metadata"]["namespace"])
        self._request("post", path, manifest["kind"], body=manifest, field_manager=names.MANAGER)

    def annotate(self, namespace: str, action: Annotate) -> None:
        """Merge annotations, if the object's uid still matches."""
        body = {"metadata": {"uid": action.uid, "annotations": action.annotations}}
        self._merge(action.api_version, action.kind, ObjectKey(namespace, action.name), body)

    def add_to_secret(self, namespace: str, action: AddToSecret) -> None:
        """Merge entries, if the Secret's uid still matches."""
        body = {"metadata": {"uid": action.uid}, "data": action.data}
        self._merge("v1", "Secret", ObjectKey(namespace, action.name), body)

    def set_authority(self, action: SetAuthority) -> None:
        """Replace all entries of an authority, if its Secret is unchanged. Server-side apply would keep those that a restore of the Secret
        wrote: a former key, or the time of another step.
        """
        manifest = action.manifest
        body = {**manifest, "data": {**dict.fromkeys(AUTHORITY_ENTRIES), **manifest["data"]}}
        self._merge("v1", "Secret", _key(manifest), body)

    def answer_request(self, namespace: str, action: AnswerRequest) -> None:
        """Replace the request by its answer, if the resource is unchanged."""
        marks = {action.request.annotation: None, action.request.answer_annotation: action.answer}
        body = {"metadata": {"resourceVersion": action.resource_version, "annotations": marks}}
        self._merge(API_VERSION, action.kind, ObjectKey(namespace, action.name), body)

    def resize(self, namespace: str, action: Resize) -> None:
        """Change the request of a volume claim, if its uid still matches."""
        body = {"metadata": {"uid": action.uid}, "spec": {"resources": {"requests": {"storage": action.size}}}}
        self._merge("v1", "PersistentVolumeClaim", ObjectKey(namespace, action.name), body)

    def delete(self, namespace: str, action: Delete) -> None:
        """Delete in the background, if the uid and, if given, the version still match. A missing object is no error."""
        version = {} if action.resource_version is None else {"resourceVersion": action.resource_version}
        body = {"preconditions": {"uid": action.uid, **version}, "propagationPolicy": "Background"}
        try:
            self._request("delete", self._path(action.api_version, action.kind, ObjectKey(namespace, action.name)), action.kind, body=body)
        except RefusedError as error:
            if not (isinstance(error.__cause__, ApiException) and error.__cause__.status == 404):
                raise

    def set_finalizers(self, resource: Resource, finalizers: tuple[str, ...]) -> None:
        """Replace the finalizers, if the resource is unchanged."""
        metadata = resource.metadata
        body = {"metadata": {"resourceVersion": metadata.resource_version, "uid": metadata.uid, "finalizers": list(finalizers)}}
        self._merge(API_VERSION, resource.KIND, resource.key, body)

    def write_status(self, resource: Resource, status: Json) -> None:
        """Apply the whole status server-side, with its own field manager. A missing resource is no error.

        A field or condition that another program wrote, such as a restore, stays through an apply. It would be believed, so it is removed.
        """
        key = resource.key
        body = {
            "apiVersion": API_VERSION,
            "kind": resource.KIND,
            # with the uid, the status can't recreate a deleted resource
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": resource.metadata.uid},
            "status": status,
        }
        path = f"{self._path(API_VERSION, resource.KIND, key)}/status"
        try:
            answer = self._apply_status(path, resource, body)
            known = {**stored_status(resource), **status}
            left = {name: value for name, value in (answer.get("status") or {}).items() if name in known}
            if removal := _removal(left, status):
                rest = {"metadata": {"uid": resource.metadata.uid}, "status": removal}
                self._request("patch", path, f"{resource.KIND}/status", body=rest, content_type=MERGE_PATCH, field_manager=STATUS_MANAGER)
        except RefusedError as error:
            if not self._is_gone(resource, error.__cause__):
                raise

    def _apply_status(self, path: str, resource: Resource, body: Json) -> Json:
        """Apply a status. Definitions that are older than the operator refuse it as a whole for one field that they lack. An earlier status
        would then go on being believed. So it is merged then: the API server drops what they lack.
        """
        what = f"{resource.KIND}/status"
        try:
            return self._request(
                "patch", path, what, body=body, content_type=APPLY_PATCH, field_manager=STATUS_MANAGER, force_conflicts=True
            )
        except RefusedError as error:
            if _UNDECLARED not in str(error):
                raise
            answer = self._request("patch", path, what, body=body, content_type=MERGE_PATCH, field_manager=STATUS_MANAGER)
            why = "the custom resource definitions are older than this operator, and lack parts of its status: upgrade them"
            self.event(resource, Reason.FIELDS_IGNORED.value, f"{why} ({error})", "Warning")
            return answer

    def _is_gone(self, resource: Resource, refusal: BaseException | None) -> bool:
        """Whether the resource is gone. A conflict may have another cause, and nothing else would show that the status is not written."""
        if not isinstance(refusal, ApiException) or refusal.status not in (404, 409):
            return False
        if refusal.status == 404:
            return True
        try:
            found = self._live.get(API_VERSION, resource.KIND, resource.key)
        except ApiException:
            return False
        return found is None or bool(found["metadata"]["uid"] != resource.metadata.uid)

    def event(self, resource: Resource, reason: str, message: str, kind: str) -> None:
        """Send an event about the resource; `kind` is Normal or Warning. A repeated event is counted, by its name.

        Events are news, not state: they don't count as writes, and one that is refused, or not answered, stops nothing. A namespace that is
        being deleted accepts none.
        """
        now = text_of_now()
        metadata = resource.metadata
        same = hashlib.sha256(json.dumps([metadata.uid, reason, message, kind]).encode()).hexdigest()[:16]
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata.name}.{same}", "namespace": metadata.namespace},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": resource.KIND,
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
            "reason": reason,
            "message": message[:1000],
            "type": kind,
            "source": {"component": names.MANAGER},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._post_or_count(body)
        except (ApiException, HTTPError) as error:
            why = _message_of(error, "post Event") if isinstance(error, ApiException) else str(error)[:200]
            logger.warning("event refused", reason=reason, message=message, error=why)

    def _post_or_count(self, event: Json) -> None:
        """Post an event, or increase the count of the existing one. A concurrent count may win: it is only news."""
        key, events = _key(event), self._client.resources.get(api_version="v1", kind="Event")
        try:
            self._client.request("post", events.path(namespace=key.namespace), body=event, _request_timeout=ANSWER_SECONDS)
        except ApiException as error:
            if error.status != 409:
                raise
            found = self._live.get("v1", "Event", key) or {}
            again = {"count": int(found.get("count") or 1) + 1, "lastTimestamp": event["lastTimestamp"]}
            path = self._path("v1", "Event", key)
            self._client.request("patch", path, body=again, content_type=MERGE_PATCH, _request_timeout=ANSWER_SECONDS)

    def _require_no_stranger(self, manifest: Json) -> None:
        key = _key(manifest)
        try:
            found = self._live.get(manifest["apiVersion"], manifest["kind"], key)
        except ApiException as error:
            raise RefusedError(_message_of(error, f"get {manifest['kind']} {key}")) from error
        if found is None:
            return
        wanted = manifest["metadata"]["labels"]
        # one that lost its labels still has its owner
        ours = _owners(manifest) & _owners(found) or is_made_for(found, wanted[names.OWNER_KIND_LABEL], wanted[names.OWNER_NAME_LABEL])
        if not ours:
            raise RefusedError(f"a {manifest['kind']} {key.name} exists that this resource did not create: delete it, or use another name")

    def _path(self, api_version: str, kind: str, key: ObjectKey) -> str:
        return str(self._client.resources.get(api_version=api_version, kind=kind).path(name=key.name, namespace=key.namespace))

    def _merge(self, api_version: str, kind: str, key: ObjectKey, body: Json) -> Json:
        path = self._path(api_version, kind, key)
        return self._request("patch", path, kind, body=body, content_type=MERGE_PATCH, field_manager=names.MANAGER)

    def _request(self, verb: str, path: str, kind: str, **arguments: Any) -> Json:
        try:
            answer: Json = self._client.request(verb, path, _request_timeout=ANSWER_SECONDS, serializer=as_sent, **arguments)
        except ApiException as error:
            refused = NamespaceTerminatingError if _NAMESPACE_TERMINATING in str(error.body) else RefusedError
            raise refused(_message_of(error, f"{verb} {kind} {path.rpartition('/')[2]}")) from error
        WRITES.labels(verb, kind).inc()
        if answer["kind"] != "Status":  # in the answer of a deletion
            self._cache.put(answer)
        return answer


def _message_of(error: ApiException, what: str) -> str:
    """Returns the API server's own message, which names field and value."""
    try:
        message = json.loads(error.body or "{}").get("message") or error.reason
    except (ValueError, AttributeError):
        message = error.reason
    return f"{what}: {message}"


def _removal(found: Json, wanted: Json) -> Json:
    """Returns the merge patch that removes from `found` the fields, and conditions by type, that are not `wanted`: an apply leaves them."""
    patch: Json = {}
    for name, value in found.items():
        if wanted.get(name) is None:
            patch[name] = None
        elif isinstance(value, dict) and isinstance(wanted[name], dict):
            patch |= {name: nested} if (nested := _removal(value, wanted[name])) else {}
        elif name == "conditions":
            types = {entry["type"] for entry in wanted[name]}
            patch |= {name: kept} if (kept := [entry for entry in value if entry["type"] in types]) != value else {}
    return patch


def _owners(item: Json) -> set[str]:
    return {reference["uid"] for reference in item["metadata"].get("ownerReferences") or []}


def _key(manifest: Json) -> ObjectKey:
    return ObjectKey(manifest["metadata"]["namespace"], manifest["metadata"]["name"])
