"""Reads of the Kubernetes API: our resources as models, and all objects that belong to one of them."""

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
"""Which kinds a resource of ours may own, by (apiVersion, kind)."""

ANSWER_SECONDS = (5.0, 30.0)
"""How long the API server may take for a connection and for an answer. Without a limit, a connection that nobody answers any more holds a
worker for ever. A pair: the client of Kubernetes ignores a single number that is not an int."""

PAGE = 500
"""Objects in an answer to a list of versions."""
ONLY_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

ResourceType = TypeVar("ResourceType", bound=Resource)


@dataclass(frozen=True)
class Unreadable(Generic[ResourceType]):
    """A stored resource that its model refuses, e.g. since older rules let it in. `rest` is the same without a spec (None)."""

    document: Json
    error: ValidationError
    rest: ResourceType


def as_sent(_: object, document: Json) -> Json:
    """An answer of the API server as it came: what the client of Kubernetes would make of it costs more than the request."""
    return document


class Source(Protocol):
    """Where objects are read. Every method raises ApiException when the API server answers with an error."""

    def get(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """An object, None when there is none. The namespace of a key is empty for what has none."""

    def get_recent(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """The same of what hardly ever changes: it may have been read some minutes ago."""

    def select(self, api_version: str, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        """The objects of a kind with these labels, in a namespace or, when None, in all of them."""


class LiveSource:
    """Asks the API server for everything."""

    def __init__(self, client: DynamicClient) -> None:
        self._client = client

    def get(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """See Source."""
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
        """See Source."""
        return self.get(api_version, kind, key)

    def select(self, api_version: str, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        """See Source."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items()) or None
        resource = self._client.resources.get(api_version=api_version, kind=kind)
        found = resource.get(namespace=namespace, label_selector=selector, _request_timeout=ANSWER_SECONDS, serializer=as_sent)
        # a list's items carry neither
        return [{**document, "apiVersion": api_version, "kind": kind} for document in found.get("items") or []]

    def versions(self, api_version: str, kind: str, namespace: str | None, selector: str) -> tuple[dict[ObjectKey, int], int]:
        """The version of each object of a kind that a label selector chooses, and the version at which they were listed, page by page."""
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
    """Takes what the watches told of from the cache, and asks the API server for the rest. Made for one look."""

    def __init__(self, cache: ObjectCache, live: Source) -> None:
        self._cache = cache
        self._live = live
        self.unwatched = False
        """Whether anything was asked for of whose changes no watch tells."""

    def get(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """See Source. Of kinds that others make, too, only our own objects are watched."""
        if self._cache.is_complete(kind):
            found = self._cache.get(kind, key)
            if found is not None or api_version == API_VERSION:
                return found
        self.unwatched = True
        return self._live.get(api_version, kind, key)

    def get_recent(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """See Source."""
        return self._cache.recent(kind, key, lambda: self._live.get(api_version, kind, key))

    def select(self, api_version: str, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        """See Source. Whatever is selected by labels carries those that the operator gives."""
        if self._cache.is_complete(kind):
            return self._cache.select(kind, namespace, labels)
        self.unwatched = True
        return self._live.select(api_version, kind, namespace, labels)


class KubernetesReader:
    """Our resources and their objects, out of one source. Every method raises ApiException when the API server answers with an error."""

    def __init__(self, source: Source, images: DefaultImages = SHIPPED_IMAGES) -> None:
        self._source = source
        self._images = images

    def over(self, source: Source) -> KubernetesReader:
        """The same, out of another source."""
        return KubernetesReader(source, self._images)

    def watched(self, cache: ObjectCache) -> WatchedSource:
        """A source that asks this one only for what the cache has not."""
        return WatchedSource(cache, self._source)

    def document(self, api_version: str, kind: str, key: ObjectKey) -> Json | None:
        """An object as it is stored, None when there is none."""
        return self._source.get(api_version, kind, key)

    def resource(self, kind: type[ResourceType], key: ObjectKey) -> ResourceType | Unreadable[ResourceType] | None:
        """One of our resources; Unreadable when its spec is not what the model allows, None when there is none."""
        document = self.document(API_VERSION, kind.KIND, key)
        return None if document is None else self.model(kind, document)

    def model(self, kind: type[ResourceType], document: Json) -> ResourceType | Unreadable[ResourceType]:
        """The model of a stored document. One that names no image has the operator's."""
        found = parsed(kind, document)
        return found if isinstance(found, Unreadable) else self._images.completed(found)

    def readable(self, kind: type[ResourceType], key: ObjectKey) -> ResourceType | None:
        """One of our resources that another one refers to; None when there is none that can be read."""
        found = self.resource(kind, key)
        return None if isinstance(found, Unreadable) else found

    def documents(self, kind: type[Resource], namespace: str | None) -> tuple[Json, ...]:
        """Our resources of one kind in a namespace (in all of them when None) as they are stored, sorted by name."""
        found = self._source.select(API_VERSION, kind.KIND, namespace, {})
        return tuple(sorted(found, key=lambda document: str(document["metadata"]["name"])))

    def resources(self, kind: type[ResourceType], namespace: str) -> tuple[ResourceType, ...]:
        """Our readable resources of one kind in a namespace, sorted by name."""
        found = (self.model(kind, document) for document in self.documents(kind, namespace))
        return tuple(item for item in found if not isinstance(item, Unreadable))

    def node(self, name: str, *, doubted: bool) -> Node | Unknown | None:
        """A node, None when it is gone, or when the operator may not read nodes at all: what it will never know holds nothing up.

        Of one that is not `doubted` only the labels matter, which hardly ever change.
        """
        read = self._source.get if doubted else self._source.get_recent
        try:
            found = read("v1", "Node", ObjectKey("", name))
        except ApiException as error:
            return None if error.status == 403 else Unknown(f"the node {name} can't be read: {error.reason}")
        return None if found is None else Node(name, found["metadata"].get("labels") or {}, _node_down(found))

    def expandable(self, storage_class: str) -> bool | Unknown:
        """Whether a StorageClass says that its volumes can grow."""
        try:
            found = self.document("storage.k8s.io/v1", "StorageClass", ObjectKey("", storage_class))
        except ApiException as error:
            return Unknown(f"the StorageClass {storage_class} can't be read: {error.reason}")
        if found is None:
            return Unknown(f"the StorageClass {storage_class} does not exist")
        return bool(found.get("allowVolumeExpansion"))

    def owned(self, owner_kind: str, key: ObjectKey, kinds: tuple[tuple[str, str], ...]) -> Objects:
        """All objects of these kinds that carry the owner's labels."""
        return self.labelled(key.namespace, {names.OWNER_KIND_LABEL: owner_kind, names.OWNER_NAME_LABEL: key.name}, kinds)

    def labelled(self, namespace: str, labels: Mapping[str, str], kinds: tuple[tuple[str, str], ...]) -> Objects:
        """All objects of these kinds that carry these labels, whoever made them."""
        found = (document for api_version, kind in kinds for document in self._source.select(api_version, kind, namespace, labels))
        return Objects({(document["kind"], document["metadata"]["name"]): document for document in found})

    def made_for(self, owner_kind: str, namespace: str, kinds: tuple[tuple[str, str], ...]) -> tuple[Json, ...]:
        """All objects of these kinds in a namespace that carry the labels of any owner of this kind."""
        labels = {names.OWNER_KIND_LABEL: owner_kind}
        return tuple(document for api_version, kind in kinds for document in self._source.select(api_version, kind, namespace, labels))

    def secret(self, key: ObjectKey) -> dict[str, str] | None:
        """The decoded values of a Secret, None when there is none."""
        document = self.document("v1", "Secret", key)
        return None if document is None else values_of_secret(document)


def values_of_secret(document: Json) -> dict[str, str]:
    """The decoded values of a Secret."""
    return {name: base64.b64decode(value).decode(errors="replace") for name, value in (document.get("data") or {}).items()}


def parsed(kind: type[ResourceType], document: Json) -> ResourceType | Unreadable[ResourceType]:
    """The model of a stored document. Fields that only a newer version knows are left out, and so are fields of the status that this one
    can't read: the resource tells which (`ignored` and `unread`)."""
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
    """A field that the model does not know, or one of the status."""
    return len(problem["loc"]) > 1 and (problem["type"] == "extra_forbidden" or problem["loc"][0] == "status")


def _leave_out(document: Json, place: tuple[str | int, ...]) -> None:
    """Take a field out: of the spec at its place, of the status the whole field at its top."""
    *way, last = place[:2] if place[0] == "status" else place
    holder: Any = document
    for step in way:
        holder = holder[step]
    holder.pop(last, None)


def parsed_wholly(kind: type[ResourceType], documents: Iterable[Json]) -> tuple[ResourceType, ...] | Unknown:
    """The models of all documents, for who must know about each; Unknown when one's spec or status can't be read."""
    found: list[ResourceType] = []
    for document in documents:
        resource, what = parsed(kind, document), f"{kind.KIND} {document['metadata']['name']}"
        if isinstance(resource, Unreadable):
            problem = resource.error.errors()[0]
            return Unknown(f"the {what} can't be read: {'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}")
        if unread := resource.unread_fields:  # what became of it is not known
            return Unknown(f"the status of the {what} can't be read: {', '.join(unread)}")
        found.append(resource)
    return tuple(found)


def _node_down(node: Json) -> NodeDown | None:
    """Of a node whose condition Ready is not True: `Unknown` is what Kubernetes writes when its kubelet is silent."""
    if is_ready(node):
        return None
    conditions = {entry["type"]: entry for entry in node.get("status", {}).get("conditions") or []}
    ready = conditions.get("Ready") or {}
    why = "does not report" if ready.get("status") != "False" else f"is not ready ({ready.get('reason', 'NotReady')})"
    taints = {taint["key"] for taint in node.get("spec", {}).get("taints") or []}
    since = ready.get("lastTransitionTime") or node["metadata"]["creationTimestamp"]
    return NodeDown(why, str(since), OUT_OF_SERVICE_TAINT in taints)
