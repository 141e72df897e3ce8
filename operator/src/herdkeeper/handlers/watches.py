"""kopf's part: it watches, and each event puts keys into the queue. No handler of it writes or decides.

Only `on.event` is used: the others write annotations, and react to edges instead of states.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import kopf

from herdkeeper.api import KINDS, HerdDBCluster
from herdkeeper.api.resource import GROUP, VERSION
from herdkeeper.domain import names
from herdkeeper.domain.observed.objects import why_gone, why_leaving
from herdkeeper.handlers.node_streams import NodeStreams
from herdkeeper.handlers.queue import DEBOUNCE_SECONDS, KeyQueue
from herdkeeper.handlers.references import References, owner_of
from herdkeeper.observe.departed import Departed
from herdkeeper.reconcile import Key, is_departed
from herdkeeper.settings import Settings

OWNED = (
    ("apps", "v1", "statefulsets"),
    ("apps", "v1", "deployments"),
    ("batch", "v1", "jobs"),
    ("", "v1", "pods"),
    ("", "v1", "persistentvolumeclaims"),
    ("", "v1", "configmaps"),
    ("", "v1", "services"),
    ("policy", "v1", "poddisruptionbudgets"),
)
"""What tells by events. Secrets and rights are looked at by the resync: passwords do not belong into a watch's cache."""


def registry_of(queue: KeyQueue[Key], streams: NodeStreams, references: References, departed: Departed) -> kopf.OperatorRegistry:
    """Handlers for our kinds and for the objects that we make."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry, id="login")(kopf.login_via_client)

    def owned_event(body: Any, **_: Any) -> None:
        if owner := owner_of(body):
            queue.add(owner)

    handler_of_ours = resource_event(queue, references, departed)
    for kind in KINDS:
        kopf.on.event(GROUP, VERSION, kind.PLURAL, registry=registry, id=f"watch-{kind.PLURAL}")(handler_of_ours)
    for group, version, plural in OWNED:
        labels = {names.MANAGED_BY_LABEL: names.MANAGER}
        handler = pod_event(queue, streams) if plural == "pods" else owned_event
        kopf.on.event(group, version, plural, labels=labels, registry=registry, id=f"watch-{plural}")(handler)
    return registry


def resource_event(queue: KeyQueue[Key], references: References, departed: Departed) -> Callable[..., None]:
    """The handler of a resource's own events."""

    def handle(event: Any, body: Any, **_: Any) -> None:
        key = Key(body["kind"], body["metadata"]["namespace"], body["metadata"]["name"])
        gone = event["type"] == "DELETED"
        if not gone:
            references.seen(key, body.get("spec") or {})
        elif is_departed(key, dict(body)):
            departed.add(key, dict(body))
        for touched in references.touched_by(key):
            queue.add(touched)
        if owner := owner_of(body):  # a run of a schedule
            queue.add(owner)
        if gone:
            references.gone(key)

    return handle


def pod_event(queue: KeyQueue[Key], streams: NodeStreams) -> Callable[..., None]:
    """The handler of a pod's events."""

    def handle(event: Any, body: Any, **_: Any) -> None:
        owner = owner_of(body)
        if owner is None:
            return
        over = event["type"] == "DELETED"
        # What ends a leader's life is acted on at once: clients stand still until it is.
        urgent = over or why_gone(body) is not None or why_leaving(body) is not None
        queue.add(owner, 0.0 if urgent else DEBOUNCE_SECONDS)
        if owner.kind == HerdDBCluster.KIND:
            streams.pod(owner, body, over=over)

    return handle


def watch(settings: Settings, queue: KeyQueue[Key], streams: NodeStreams, references: References, departed: Departed) -> None:
    """Watch until SIGTERM or SIGINT. Raises what makes watching impossible."""
    kopf_settings = kopf.OperatorSettings()
    kopf_settings.posting.enabled = False
    kopf_settings.execution.max_workers = 4
    asyncio.run(
        kopf.operator(
            registry=registry_of(queue, streams, references, departed),
            settings=kopf_settings,
            standalone=True,
            # kopf would ask the system for a user name, which a container's user has not
            identity=cast(Any, settings.identity),
            clusterwide=not settings.watch_namespaces,
            namespaces=settings.watch_namespaces,
        )
    )
