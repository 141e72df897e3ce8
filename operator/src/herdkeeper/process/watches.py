"""The watches, by kopf. Each event updates the cache and adds keys to the queue. No handler writes or decides.

Only `on.event` is used: kopf's other handlers write annotations, and react to changes instead of states.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import kopf

from herdkeeper.api import HerdDBCluster
from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.key import Key
from herdkeeper.engine.reconcile import has_data_to_delete
from herdkeeper.process.node_streams import NodeStreams
from herdkeeper.process.queues import Queues
from herdkeeper.process.references import References, owner_of
from herdkeeper.process.watched_kinds import WATCHED_KINDS, WatchedKind
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper.shared.objects import Json, is_controlled_by, why_gone, why_stopping

AGAIN_SECONDS = (1.0,) * 60
"""How soon a failed watch is opened again. By default kopf backs off, and observations would be outdated for as long."""


class NothingKept(kopf.DiffBaseStorage):
    """Stores no last state of an object: `on.event` needs no difference, for which kopf would copy each object twice."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        """See kopf."""


@dataclass(frozen=True)
class WatchEvents:
    """Handles watch events: the cache gets the object, and affected resources are requeued."""

    queues: Queues
    cache: ObjectCache
    streams: NodeStreams
    references: References
    deleted: DeletedResources

    def event(self, kind: WatchedKind, event: Mapping[str, Any]) -> None:
        """Handle an event of an object of this kind."""
        body, gone = event["object"], event["type"] == "DELETED"
        if gone:
            self.cache.drop(body)
        else:
            self.cache.put(body)
        owner = owner_of(body)
        if kind.is_ours:
            self._resource(body, gone=gone)
        if owner is not None and (kind.kind, owner.kind) == ("StatefulSet", HerdDBCluster.KIND):
            self._nodes_of(owner, body)
        if owner is not None:  # a run of a schedule has one, too
            urgent = kind.kind == "Pod" and self._pod(owner, body, over=gone)
            (self.queues.hurry if urgent else self.queues.changed)(owner)

    def _resource(self, body: Json, *, gone: bool) -> None:
        key = Key(body["kind"], body["metadata"]["namespace"], body["metadata"]["name"])
        departs = gone and has_data_to_delete(key, body)
        if not gone:
            self.references.seen(key, body.get("spec") or {})
        elif departs:
            self.deleted.add(key, body)
        namesakes = () if departs else self.references.namesakes(key)  # they would take over what is about to be dropped
        for touched in (*self.references.affected_by(key), *namesakes):
            self.queues.changed(touched)
        if gone:
            self.references.gone(key)

    def _pod(self, owner: Key, body: Json, *, over: bool) -> bool:
        """Handle a pod's event. Returns whether its owner is requeued at once: while a leader ends, its clients wait."""
        if owner.kind == HerdDBCluster.KIND:
            self._node(owner, body, over=over)
        return over or why_gone(body) is not None or why_stopping(body) is not None

    def _nodes_of(self, owner: Key, stateful_set: Json) -> None:
        """Handle the pods of a StatefulSet again: watches are not ordered, so their events may have come before it."""
        namespace, labels = stateful_set["metadata"]["namespace"], stateful_set["metadata"]["labels"]
        chosen = {name: labels[name] for name in (names.OWNER_KIND_LABEL, names.OWNER_NAME_LABEL)}
        for pod in self.cache.select("Pod", namespace, chosen):
            self._node(owner, pod, over=False)

    def _node(self, owner: Key, pod: Json, *, over: bool) -> None:
        """Handle a SQL node's pod. A pod that the StatefulSet did not create gets no stream: anybody can copy the labels."""
        key = ObjectKey(owner.namespace, owner.name)
        made_by = self.cache.get("StatefulSet", ObjectKey(owner.namespace, HerdDBNames(key).stateful_set))
        self.streams.pod(owner, pod, over=over or not is_controlled_by(pod, made_by))


def registry_of(events: WatchEvents) -> kopf.OperatorRegistry:
    """Returns handlers for all watched kinds."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry, id="login")(kopf.login_via_client)
    for kind in WATCHED_KINDS:
        kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"watch-{kind.plural}")(_handler(events, kind))
    return registry


def _handler(events: WatchEvents, kind: WatchedKind) -> Callable[..., Awaitable[None]]:
    async def handle(event: Any, **_: Any) -> None:  # a coroutine in kopf's own thread: nothing in it blocks
        events.event(kind, event)

    return handle


def watch(settings: Settings, events: WatchEvents) -> None:
    """Watch until SIGTERM or SIGINT. Raises the error that makes watching impossible."""
    kopf_settings = kopf.OperatorSettings()
    kopf_settings.posting.enabled = False
    kopf_settings.watching.chunk_size = 50  # a list of all kinds begins at once, and a process never returns its peak of memory
    kopf_settings.persistence.diffbase_storage = NothingKept()
    kopf_settings.networking.error_backoffs = AGAIN_SECONDS
    kopf_settings.queueing.idle_timeout = 0.05  # for this time a worker of kopf keeps its object's last event in memory
    for kind in WATCHED_KINDS:
        if kind.selector:
            kopf_settings.watching.label_selectors[kind.group, kind.version, kind.plural] = kind.selector
    asyncio.run(
        kopf.operator(
            registry=registry_of(events),
            settings=kopf_settings,
            standalone=True,
            # without it kopf asks the system for a user name, which a container's user does not have
            identity=cast(Any, settings.identity),
            clusterwide=not settings.watch_namespaces,
            namespaces=settings.watch_namespaces,
        )
    )
