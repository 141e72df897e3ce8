"""Reads the Kubernetes API: custom resources as models, and the objects of one of them."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from pydantic import ValidationError

from herdkeeper.api.default_images import SHIPPED_IMAGES, DefaultImages
from herdkeeper.api.resource import API_VERSION, ObjectMeta, Resource
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.shared import names
from herdkeeper.shared.lost_node import OUT_OF_SERVICE_TAINT
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.node import Node, NodeDown
from herdkeeper.shared.objects import Json, Objects, is_ready
from herdkeeper.shared.unknown import Unknown

WORKLOADS = (("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"))
NETWORK_POLICIES = (("networking.k8s.io/v1", "NetworkPolicy"),)
SHARED = (
    *(("v1", "ConfigMap"), ("v1", "Service"), ("policy/v1", "PodDisruptionBudget"), ("v1", "Pod"), ("v1", "PersistentVolumeClaim")),
    *NETWORK_POLICIES,
)
SECRETS = (("v1", "Secret"),)
JOBS = (
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "ServiceAccount"),
    *SECRETS,
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    *NETWORK_POLICIES,
)
"""Kinds that a resource may own, by (apiVersion, kind)."""

ANSWER_SECONDS = (5.0, 30.0)
"""Timeouts of the API server for connecting and answering. Without them, a dead connection blocks a worker forever. It is a pair, since the
Kubernetes client ignores a single number that is not an int."""

PAGE = 500
"""Objects per page of a list of versions."""
ONLY_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

ResourceType = TypeVar("ResourceType", bound=Resource)
_Version = tuple[str, ObjectKey, str]
"""A resource's kind, name and resourceVersion."""


@dataclass(frozen=True)
class Unreadable(Generic[ResourceType]):
    """A stored resource with an invalid spec, e.g. from older rules. `rest` is the resource without its spec (None)."""

    document: Json
    error: ValidationError
    rest: ResourceType


def as_sent(_: object, document: Json) -> Json:
    """Returns the raw answer of the API server. Deserialization by the Kubernetes client would cost more than the request."""
    return document


class Source(Protocol):
    """A source of objects. Every method raises ApiException for an error of the API server."""

    def get(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """Returns an object, or None. A key of a cluster-scoped object has an empty namespace."""

    def get_recent(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """The same for objects that hardly change: it may be minutes old."""

    def select(self, api_version: str, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        """Returns the objects of a kind with these labels, in a namespace or, if None, in all of them."""


class LiveSource:
    """Reads everything from the API server."""

    def __init__(self, client: DynamicClient) -> None:
        self._client = client

    def get(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """See Source. A name that no object may have finds none: it may come from a resource."""
        if not names.may_be_an_object(key.name):
            return None
        try:
            found: Json = self._client.resources.get(api_version=api_version, kind=kind).get(
                name=key.name, namespace=key.namespace or None, _request_timeout=ANSWER_SECONDS, serializer=as_sent
            )
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return found

    def get_recent(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        return self.get(api_version, kind, key)

    def select(self, api_version: str, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        selector = ",".join(f"{name}={value}" for name, value in labels.items()) or None
        resource = self._client.resources.get(api_version=api_version, kind=kind)
        found = resource.get(namespace=namespace, label_selector=selector, _request_timeout=ANSWER_SECONDS, serializer=as_sent)
        # items of a list have neither
        return [{**document, "apiVersion": api_version, "kind": kind} for document in found.get("items") or []]

    def versions(self, api_version: str, kind: str, namespace: str | None, selector: str) -> tuple[dict[ObjectKey, int], int]:
        """Returns the version of each object of a kind with this label selector, and the version of the list, page by page."""
        resource = self._client.resources.get(api_version=api_version, kind=kind)
        found: dict[ObjectKey, int] = {}
        following: str | None = None
        while True:
            answer = self._client.request(
                "get",
                resource.path(namespace=namespace),
                label_selector=selector or None,
                limit=PAGE,
                _continue=following,
                header_params={"Accept": ONLY_METADATA},
                _request_timeout=ANSWER_SECONDS,
                serializer=as_sent,
            )
            for item in answer.get("items") or []:
                metadata = item["metadata"]
                found[ObjectKey(metadata.get("namespace", ""), metadata["name"])] = int(metadata["resourceVersion"])
            following = answer["metadata"].get("continue") or None
            if following is None:
                return found, int(answer["metadata"]["resourceVersion"])


class WatchedSource:
    """Reads watched objects from the cache, and the rest from the API server. Made for one observation."""

    def __init__(self, cache: ObjectCache, live: Source) -> None:
        self._cache = cache
        self._live = live
        self.unwatched = False
        """Whether anything was read that no watch covers."""

    def get(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """See Source. Of kinds that others create, too, only the operator's objects are watched."""
        if self._cache.is_complete(kind):
            found = self._cache.get(kind, key)
            if found is not None or api_version == API_VERSION:
                return found
        self.unwatched = True
        found = self._live.get(api_version, kind, key)
        self._cache.renew(kind, key, found)
        return found

    def get_recent(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        known = self._cache.get(kind, key) if self._cache.is_complete(kind) else None
        return known or self._cache.recent(kind, key, lambda: self._live.get(api_version, kind, key))

    def select(self, api_version: str, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        """See Source. All objects selected by labels have those of the operator."""
        if self._cache.is_complete(kind):
            return self._cache.select(kind, namespace, labels)
        self.unwatched = True
        return self._live.select(api_version, kind, namespace, labels)


class KubernetesReader:
    """Reads custom resources and their objects from one source. Every method raises ApiException for an error of the API server."""

    def __init__(
        self,
        source: Source,
        images: DefaultImages = SHIPPED_IMAGES,
        models: dict[_Version, Any] | None = None,
        *,
        assigned_ids: bool = False,
    ) -> None:
        self._source = source
        self._images = images
        self._models = models
        self._assigned_ids = assigned_ids

    def over(self, source: Source) -> KubernetesReader:
        """Returns a reader over another source, for one look, which parses each version of a resource once."""
        return KubernetesReader(source, self._images, {}, assigned_ids=self._assigned_ids)

    def watched(self, cache: ObjectCache) -> WatchedSource:
        """Returns a source that asks this one only for what is not in the cache."""
        return WatchedSource(cache, self._source)

    def document(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        return self._source.get(api_version, kind, key)

    def resource(self, kind: type[ResourceType], key: ObjectKey) -> ResourceType | Unreadable[ResourceType] | None:
        """Returns a custom resource; Unreadable if its spec is invalid, None if missing."""
        document = self.document(API_VERSION, kind.KIND, key)
        return None if document is None else self.model(kind, document)

    def model(self, kind: type[ResourceType], document: Json) -> ResourceType | Unreadable[ResourceType]:
        """Returns the model of a stored document. It gets the operator's settings: the default of an image, and who assigns ids to pods."""
        metadata = document["metadata"]
        version = (kind.KIND, ObjectKey(metadata.get("namespace", ""), metadata["name"]), metadata.get("resourceVersion", ""))
        if self._models is not None and version in self._models:
            return cast("ResourceType | Unreadable[ResourceType]", self._models[version])
        found = parsed(kind, document)
        model = found if isinstance(found, Unreadable) else self._completed(found)
        if self._models is not None:
            self._models[version] = model
        return model

    def _completed(self, resource: ResourceType) -> ResourceType:
        completed = self._images.completed(resource)
        return completed.model_copy(update={"assigned_ids": True}) if self._assigned_ids else completed

    def models(self, kind: type[ResourceType], documents: Iterable[Json]) -> tuple[ResourceType, ...] | Unknown:
        """Returns the models of all documents, for a caller that needs every one. Unknown if a spec or status can't be read."""
        found: list[ResourceType] = []
        for document in documents:
            resource, what = self.model(kind, document), f"{kind.KIND} {document['metadata']['name']}"
            if isinstance(resource, Unreadable):
                problem = resource.error.errors()[0]
                return Unknown(f"the {what} can't be read: {'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}")
            if unread := resource.unread_fields:  # its state is unknown
                return Unknown(f"the status of the {what} can't be read: {', '.join(unread)}")
            found.append(resource)
        return tuple(found)

    def readable(self, kind: type[ResourceType], key: ObjectKey) -> ResourceType | None:
        """Returns a referenced resource; None if missing or unreadable."""
        found = self.resource(kind, key)
        return None if isinstance(found, Unreadable) else found

    def documents(self, kind: type[Resource], namespace: str | None) -> tuple[Json, ...]:
        """Returns the resources of one kind in a namespace (in all of them if None) as stored, sorted by name."""
        found = self._source.select(API_VERSION, kind.KIND, namespace, {})
        return tuple(sorted(found, key=lambda document: str(document["metadata"]["name"])))

    def resources(self, kind: type[ResourceType], namespace: str) -> tuple[ResourceType, ...]:
        """Returns the readable resources of one kind in a namespace, sorted by name."""
        found = (self.model(kind, document) for document in self.documents(kind, namespace))
        return tuple(item for item in found if not isinstance(item, Unreadable))

    def node(self, name: str, *, doubted: bool) -> Node | Unknown | None:
        """Returns a node. None if it is gone, or if the operator may not read nodes: that must block nothing.

        Unless `doubted`, only its labels are told, which hardly ever change: it may be minutes old, and be up by now.
        """
        read = self._source.get if doubted else self._source.get_recent
        try:
            found = read("v1", "Node", ObjectKey("", name))
        except ApiException as error:
            return None if error.status == 403 else Unknown(f"the node {name} can't be read: {error.reason}")
        return None if found is None else Node(name, found["metadata"].get("labels") or {}, _node_down(found) if doubted else None)

    def expandable(self, storage_class: str) -> bool | Unknown:
        try:
            found = self.document("storage.k8s.io/v1", "StorageClass", ObjectKey("", storage_class))
        except ApiException as error:
            return Unknown(f"the StorageClass {storage_class} can't be read: {error.reason}")
        if found is None:
            return Unknown(f"the StorageClass {storage_class} does not exist")
        return bool(found.get("allowVolumeExpansion"))

    def owned(self, owner_kind: str, key: ObjectKey, kinds: tuple[tuple[str, str], ...]) -> Objects:
        """Returns all objects of these kinds with the owner's labels."""
        return self.labelled(key.namespace, {names.OWNER_KIND_LABEL: owner_kind, names.OWNER_NAME_LABEL: key.name}, kinds)

    def labelled(self, namespace: str, labels: Mapping[str, str], kinds: tuple[tuple[str, str], ...]) -> Objects:
        """Returns all objects of these kinds with these labels, whoever created them."""
        found = (document for api_version, kind in kinds for document in self._source.select(api_version, kind, namespace, labels))
        return Objects(_by_name(found))

    def with_claims(self, objects: Objects, namespace: str, claims: Iterable[str], mark: str) -> Objects:
        """Returns the objects, with volume claims of these names that have the annotation `mark` instead of the owner's labels."""
        unseen = (ObjectKey(namespace, name) for name in claims if name not in objects.claims)
        found = (document for key in unseen if (document := self.document("v1", "PersistentVolumeClaim", key)) is not None)
        marked = (document for document in found if mark in (document["metadata"].get("annotations") or {}))
        return Objects({**objects.items, **_by_name(marked)})

    def with_secrets(self, objects: Objects, namespace: str, secrets: Iterable[str]) -> Objects:
        """Returns the objects, with Secrets of these names that lack the owner's labels, as `kubectl replace` leaves them."""
        unseen = (ObjectKey(namespace, name) for name in secrets if objects.get("Secret", name) is None)
        found = (document for key in unseen if (document := self.document("v1", "Secret", key)) is not None)
        return Objects({**objects.items, **_by_name(found)})

    def made_for(self, owner_kind: str, namespace: str, kinds: tuple[tuple[str, str], ...]) -> tuple[Json, ...]:
        """Returns all objects of these kinds in a namespace with the labels of any owner of this kind."""
        labels = {names.OWNER_KIND_LABEL: owner_kind}
        return tuple(document for api_version, kind in kinds for document in self._source.select(api_version, kind, namespace, labels))

    def secret(self, key: ObjectKey) -> dict[str, str] | None:
        """Returns the decoded values of a Secret, or None."""
        document = self.document("v1", "Secret", key)
        return None if document is None else values_of_secret(document)

    def recent_secret(self, key: ObjectKey) -> dict[str, str] | None:
        """The same for a Secret that rarely changes. If the operator did not make it, its content may be minutes old."""
        document = self._source.get_recent("v1", "Secret", key)
        return self.secret(key) if document is None else values_of_secret(document)

    def claim_since(self, key: ObjectKey) -> str | None:
        """Returns when a volume claim was made; None if there is none, or it is being deleted. The answer may be minutes old."""
        claim = self._source.get_recent("v1", "PersistentVolumeClaim", key)
        return None if claim is None or "deletionTimestamp" in claim["metadata"] else str(claim["metadata"]["creationTimestamp"])


def _by_name(documents: Iterable[Json]) -> dict[tuple[str, str], Json]:
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def values_of_secret(document: Json) -> dict[str, str]:
    return {name: base64.b64decode(value).decode(errors="replace") for name, value in (document.get("data") or {}).items()}


def parsed(kind: type[ResourceType], document: Json) -> ResourceType | Unreadable[ResourceType]:
    """Returns the model of a stored document. Unknown fields of a newer version, and unreadable fields of the status, are left out and
    listed in the resource (`ignored` and `unread`).
    """
    left = document
    ignored: list[str] = []
    while True:
        try:
            return _with_unread_fields(kind.model_validate(left), document, left, ignored)
        except ValidationError as error:
            without = [problem["loc"] for problem in error.errors() if _is_left_out(problem)]
            if not without:
                return Unreadable(document, error, _with_unread_fields(_without_spec(kind, left), document, left, ignored))
            left = copy.deepcopy(left)
            for place in without:
                _leave_out(left, place)
            ignored += [".".join(map(str, place)) for place in without if place[0] == "spec"]


def _with_unread_fields(resource: ResourceType, document: Json, left: Json, ignored: Iterable[str]) -> ResourceType:
    unread = {name: value for name, value in (document.get("status") or {}).items() if name not in left["status"]}
    return resource.model_copy(update={"ignored": tuple(ignored), "unread": unread})


def _without_spec(kind: type[ResourceType], document: Json) -> ResourceType:
    status = kind.status_model().model_validate(document.get("status") or {})
    rest = kind.model_construct(metadata=ObjectMeta.model_validate(document["metadata"]), spec=None, status=status)
    return cast("ResourceType", rest)


def _is_left_out(problem: Mapping[str, Any]) -> bool:
    """Returns whether the field is unknown to the model, or in the status."""
    return len(problem["loc"]) > 1 and (problem["type"] == "extra_forbidden" or problem["loc"][0] == "status")


def _leave_out(document: Json, place: tuple[str | int, ...]) -> None:
    """Remove a field: in the spec at its place, in the status the whole top-level field."""
    *way, last = place[:2] if place[0] == "status" else place
    holder: Any = document
    for step in way:
        holder = holder[step]
    holder.pop(last, None)


def _node_down(node: Json) -> NodeDown | None:
    """For a node whose condition Ready is not True; Kubernetes sets `Unknown` if its kubelet is silent."""
    if is_ready(node):
        return None
    conditions = {entry["type"]: entry for entry in node.get("status", {}).get("conditions") or []}
    ready = conditions.get("Ready") or {}
    why = "does not report" if ready.get("status") != "False" else f"is not ready ({ready.get('reason', 'NotReady')})"
    taints = {taint["key"] for taint in node.get("spec", {}).get("taints") or []}
    since = ready.get("lastTransitionTime") or node["metadata"]["creationTimestamp"]
    return NodeDown(why, str(since), OUT_OF_SERVICE_TAINT in taints)
