"""The operator's process: one port for probes and metrics, the Lease, the workers, the watches."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

import structlog
from kubernetes import client, config
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from structlog.tracebacks import ExceptionDictTransformer
from urllib3 import Retry
from urllib3.exceptions import HTTPError

from herdkeeper.api import KINDS
from herdkeeper.api.resource import API_VERSION
from herdkeeper.bookkeeper.execute import BookieAdmin
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.counters import LEADING
from herdkeeper.clients.http import JsonReader
from herdkeeper.clients.identities import read_identity
from herdkeeper.clients.kubernetes import ANSWER_SECONDS, KubernetesReader, LiveSource
from herdkeeper.clients.kubernetes_writer import KubernetesWriter
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.clients.zookeeper import EnsembleSessions
from herdkeeper.engine.execute import Clients
from herdkeeper.engine.key import Key, locks_of
from herdkeeper.engine.kinds import steps_by_kind
from herdkeeper.engine.leadership import reconcile_leadership
from herdkeeper.engine.queue import KeyQueue
from herdkeeper.engine.reconcile import reconcile
from herdkeeper.herddb.execute.node_orders import NodeOrders
from herdkeeper.process.cache_check import CacheCheck
from herdkeeper.process.health import HealthServer
from herdkeeper.process.lease import Lease
from herdkeeper.process.node_streams import NodeStreams, open_stream
from herdkeeper.process.queues import Queues
from herdkeeper.process.references import References
from herdkeeper.process.watched_namespaces import WatchedNamespaces
from herdkeeper.process.watches import WatchEvents, watch
from herdkeeper.process.workers import PLACES, THREADS, Workers
from herdkeeper.settings import Settings

Answer = TypeVar("Answer")
namespace_of = attrgetter("namespace")

CONSTRAINTS = "security.openshift.io"
"""The API group of OpenShift's SecurityContextConstraints: they assign a namespace's users and groups to its pods."""
ASSIGNED_USERS = "openshift.io/sa.scc.uid-range"
"""The annotation by which OpenShift gives each namespace the users of its pods."""
STACK_BYTES = 2**20
"""Of each thread. In glibc's 8 MiB a kernel that always uses huge pages backs the first touched byte with 2 MiB; they don't fit in here."""
AGAIN_SECONDS = 1.0
"""How soon an API server that was not reached is tried again."""

logger = structlog.get_logger()
_TRACEBACKS = ExceptionDictTransformer(show_locals=False)
"""Local variables hold passwords: of credentials that were read, of Secrets that are about to be made."""


def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT; ends the process when the Lease is lost."""
    configure_logging(settings.log_level)
    threading.stack_size(STACK_BYTES)
    troubles: list[Callable[[], str | None]] = []
    reached = threading.Event()
    health = HealthServer(
        settings.http_port,
        trouble=lambda: next(filter(None, (trouble() for trouble in troubles)), None),
        awaited=lambda: None if reached.is_set() else "the API server does not answer, or does not serve the operator's kinds; see the log",
    )
    health.start()
    for number in (signal.SIGTERM, signal.SIGINT):  # until there is a Lease to give up
        signal.signal(number, lambda *_: sys.exit(0))
    dynamic = once_served(kubernetes_client)
    assigned, live = once_answered(partial(assigned_ids, dynamic.client, settings)), LiveSource(dynamic)
    namespaces = once_answered(partial(WatchedNamespaces.found, live, settings.watch_namespaces))
    settings = replace(settings, watch_namespaces=namespaces.watched)
    reached.set()
    lease = Lease(dynamic, settings.namespace, settings.identity, _end_at_once)
    for number in (signal.SIGTERM, signal.SIGINT):  # until kopf takes them over
        signal.signal(number, lambda *_: lease.give_up())
    cache = ObjectCache()
    kubernetes = KubernetesReader(live, settings.images, assigned_ids=assigned)
    ensembles = EnsembleSessions(partial(read_identity, kubernetes))
    reader = ClusterReader(kubernetes, ensembles, JsonReader())
    references = References()
    # Servers of a namespace may answer as slowly as they can: the last place is for the other namespaces.
    most = None if len(settings.watch_namespaces) == 1 else PLACES.fast - 1
    queues = Queues(
        KeyQueue(locks=partial(locks_of, references.stacks_of), share=namespace_of, most_of_a_share=most, places=PLACES),
        KeyQueue(share=namespace_of, most_of_a_share=most, places=PLACES),
    )
    clients = Clients(KubernetesWriter(dynamic, cache), reader, BookieAdmin(), lease.held, NodeOrders())
    steps = steps_by_kind(settings)
    moves = partial(reconcile_leadership, cache=cache)
    controllers = (
        Workers(settings, clients, queues.resources, lambda key, mine: reconcile(key, steps[key.kind], mine, cache), queues.changed),
        Workers(settings, clients, queues.leadership, moves, queues.changed, controller="leadership"),
    )
    watched = kubernetes.over(kubernetes.watched(cache))
    streams = NodeStreams(queues.hurry, partial(_queue_affected, queues, references), reader.liveness, partial(open_stream, watched))
    events = WatchEvents(queues, cache, streams, references, reader.deleted)
    check = CacheCheck(settings, live, cache, events.event)
    troubles += [each.trouble for each in (*controllers, check, namespaces)]
    if lease.acquire():
        LEADING.set(1)
        namespaces.start()
        check.start(then=partial(_start, controllers))
        watch(settings, events)
        check.stop()
        streams.stop()
        queues.close()
        ended = [each.stop() for each in controllers]
        if all(ended):
            lease.release()
        else:
            logger.warning("an action still runs; the Lease ends by itself, after this process")
    reader.scans.stop()
    ensembles.stop()
    health.stop()
    logger.info("stopped")


def _queue_affected(queues: Queues, references: References, key: Key) -> None:
    for touched in references.affected_by(key):
        queues.changed(touched)


def _start(controllers: Iterable[Workers]) -> None:
    for each in controllers:
        each.start()


def once_served(connect: Callable[[], DynamicClient]) -> DynamicClient:
    """What `connect` makes, once the API server serves our kinds. A process that ended instead would be started again later and later, and
    come back long after the API server."""

    def connected() -> DynamicClient:
        dynamic = connect()
        for kind in KINDS:
            dynamic.resources.get(api_version=API_VERSION, kind=kind.KIND)
        return dynamic

    return once_answered(connected)


def once_answered(ask: Callable[[], Answer]) -> Answer:
    """What `ask` returns, once the API server answers it."""
    while True:
        try:
            return ask()
        except (ApiException, HTTPError, ResourceNotFoundError) as error:
            logger.warning("the API server does not answer yet", error=str(error)[:200], again_in_seconds=AGAIN_SECONDS)
            time.sleep(AGAIN_SECONDS)


def assigned_ids(api_client: client.ApiClient, settings: Settings) -> bool:
    """Whether the platform assigns users and groups to pods. With Auto: whether it is OpenShift, which has users for the operator's own
    namespace. The group alone may be another project's copy of the definition. The list of groups is the API server's own, so it also names
    a group whose server is down. Raises ApiException and HTTPError: a guess would restart all servers.
    """
    if settings.pod_ids != "Auto":
        return settings.pod_ids == "Assigned"
    groups = {group.name for group in client.ApisApi(api_client).get_api_versions().groups}
    own = client.CoreV1Api(api_client).read_namespace(settings.namespace).metadata if CONSTRAINTS in groups else None
    assigned = own is not None and ASSIGNED_USERS in (own.annotations or {})
    logger.info("who assigns users and groups to pods", platform=assigned)
    return assigned


class BoundedClient(client.ApiClient):  # type: ignore[misc]
    """A client of Kubernetes whose requests all end, those by which it discovers kinds, too."""

    def call_api(self, *arguments: Any, _request_timeout: Any = None, **options: Any) -> Any:
        return super().call_api(*arguments, _request_timeout=_request_timeout or ANSWER_SECONDS, **options)


def kubernetes_client() -> DynamicClient:
    """A client for the cluster that the process runs in, else for the kubeconfig's. Raises ApiException, and HTTPError while the API server
    does not answer."""
    try:
        config.load_incluster_config()
    except config.ConfigException:
        config.load_kube_config()
    configuration = client.Configuration.get_default_copy()
    configuration.connection_pool_maxsize = THREADS * 2
    configuration.retries = Retry(3, read=0)  # urllib3 would wait for each answer four times, and a timeout mean a quarter of itself
    folder = tempfile.mkdtemp(prefix="herdkeeper-")
    return DynamicClient(BoundedClient(configuration), cache_file=os.path.join(folder, "discovery.json"))


def configure_logging(level: str) -> None:
    """One JSON line an event, of structlog and of the libraries alike."""
    number = getattr(logging, level.upper())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.ExceptionRenderer(_TRACEBACKS), structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
        )
    )
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)


def _end_at_once() -> None:
    """No late action may follow a lost Lease: nothing is cleaned up, no thread is waited for."""
    os._exit(1)
