"""Executes the actions of a plan in order, each with an event and a log line. Stops at the first failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

import structlog

from herdkeeper.api import BookKeeperCluster, HerdDBCluster
from herdkeeper.api.resource import Resource
from herdkeeper.bookkeeper.execute import BookieAdmin
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes_writer import ChangedAtOnceError, KubernetesWriter, NamespaceTerminatingError, RefusedError
from herdkeeper.clients.zookeeper import EnsembleError, Znodes
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.engine import execute_metadata as metadata
from herdkeeper.herddb.execute import tablespaces as tablespace
from herdkeeper.herddb.execute.node_orders import NodeOrders, SqlNodes
from herdkeeper.herddb.execute.tablespaces import Login
from herdkeeper.herddb.observe.tls import read_tls
from herdkeeper.herddb.observe.users import read_credentials
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.herddb.state.log_store import log_store
from herdkeeper.herddb.state.tls import TlsUsable, why_no_login
from herdkeeper.planning import actions as do
from herdkeeper.planning.actions import Action, Plan
from herdkeeper.planning.status import Failed, described
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Json, label
from herdkeeper.sql.errors import SqlError

logger = structlog.get_logger()

_ALONE = (do.BarPromotion, do.CloseLedger, do.Resize, do.SetBookieMode)
"""Actions on which no later one depends. Each may fail for long: a server refuses or is silent, or a quota refuses."""
_CREATED_ALONE = ("ConfigMap", "Job")
"""Kinds of which the same holds if they are created: those of a drain's round."""
_TEMPLATES = (
    ("StatefulSet", names.BOOKIE_COMPONENT),
    ("StatefulSet", names.HERDDB_COMPONENT),
    ("Deployment", names.AUTORECOVERY_COMPONENT),
)
"""Kinds and components of which the same holds if they are changed."""
_CHEAP = (do.BarPromotion, do.Resize)
"""Those of them of which a retry costs little."""


class LiveReadsNeededError(Exception):
    """A reconcile from the cache found something to do."""


@dataclass(frozen=True)
class Clients:
    """What actions are done with. `bookies` reaches their admin ports. `may_act` answers whether this process still holds the Lease: asked
    before each action. Clients that are `read_only` do nothing: `require_live_reads` raises LiveReadsNeededError.
    """

    writer: KubernetesWriter
    reader: ClusterReader
    bookies: BookieAdmin
    may_act: Callable[[], bool]
    orders: NodeOrders
    read_only: bool = False

    def require_live_reads(self) -> None:
        """Asked for before anything is done, or is read that costs much."""
        if self.read_only:
            raise LiveReadsNeededError


def execute(resource: Resource, plan: Plan, clients: Clients) -> Failed | None:
    """Execute the actions in order, up to the first failure on which later ones may depend. NetworkPolicies are written in any case, and
    removed unless one was refused. Returns the first failure.
    """
    if plan.actions:
        clients.require_live_reads()
    first: Failed | None = None
    stopped = unguarded = backs_off = False
    for action in plan.actions:
        if stopped and (unguarded or not _removes_policy(action)) and not _writes_policy(action):
            continue
        failed = perform(resource, action, clients)
        first = first or failed
        if failed is not None:
            stopped = stopped or not (failed.done or _stands_alone(action))
            unguarded = unguarded or _writes_policy(action)
            # a silent server holds the worker for long, and a drain's step reads all ledgers
            backs_off = backs_off or not isinstance(action, _CHEAP)
    return None if first is None else replace(first, backs_off=backs_off)


def _stands_alone(action: Action) -> bool:
    if isinstance(action, do.Apply):
        return not action.new and _is_template(action.manifest)
    return isinstance(action, _ALONE) or (isinstance(action, do.Create) and action.manifest["kind"] in _CREATED_ALONE)


def _is_template(manifest: Json) -> bool:
    """Returns whether it is the template of a bookie, of SQL nodes, or of autorecovery. Kubernetes may refuse it for ever, e.g. an image
    that a webhook does not admit. Nothing that follows needs it.
    """
    return (manifest["kind"], label(manifest, names.COMPONENT_LABEL)) in _TEMPLATES


def _writes_policy(action: Action) -> bool:
    """Returns whether an action depends on no other one: whatever else fails for long, a policy keeps others away from servers."""
    return isinstance(action, do.Apply) and action.manifest["kind"] == "NetworkPolicy"


def _removes_policy(action: Action) -> bool:
    """Returns whether an action depends on the policies alone. Whoever no policy keeps away any more reaches the servers."""
    return isinstance(action, do.Delete) and action.kind == "NetworkPolicy"


@dataclass(frozen=True)
class Attempt:
    """What came of an action: why it failed, if it did, and the reason, message and type of the event that reports it, if there is one."""

    failed: Failed | None = None
    event: tuple[str, str, str] | None = None

    def report(self, resource: Resource, clients: Clients) -> None:
        if self.event is not None:
            clients.writer.event(resource, *self.event)


def perform(resource: Resource, action: Action, clients: Clients) -> Failed | None:
    """Execute one action and report it; why it failed, or None."""
    attempt = attempted(resource, action, clients)
    attempt.report(resource, clients)
    return attempt.failed


def attempted(resource: Resource, action: Action, clients: Clients) -> Attempt:
    """Execute one action. Its event is the caller's to report."""
    reason, message = described(action)
    if not clients.may_act():
        return Attempt(Failed("this process lost the Lease"))
    try:
        _do(resource, action, clients)
    except (RefusedError, EnsembleError, SqlError, MalformedDataError, OSError) as error:
        logger.warning("action failed", action=message, error=str(error))
        done = isinstance(error, ChangedAtOnceError)
        failed = Failed(f"{message}: {error}", for_good=isinstance(error, NamespaceTerminatingError), done=done)
        return Attempt(failed, ("ActionFailed", f"{message}: {error}", "Warning"))
    logger.info("done", action=message, reason=reason.value)
    if isinstance(action, do.WakeNodes) or _is_routine_finalizer(resource, action):
        return Attempt()
    return Attempt(event=(reason.value, message, "Warning" if reason.needs_person else "Normal"))


def _is_routine_finalizer(resource: Resource, action: Action) -> bool:
    """A finalizer that goes before any deletion is no news."""
    return isinstance(action, do.SetFinalizer) and not action.present and resource.metadata.deletion_timestamp is None


def _do(resource: Resource, action: Action, clients: Clients) -> None:  # noqa: C901, PLR0912, PLR0915 - one line an action
    namespace = resource.metadata.namespace

    def at(address: str) -> Znodes:
        return clients.reader.znodes(address, namespace)

    nodes = SqlNodes(namespace, clients.reader, clients.orders)
    match action:
        case do.Apply():
            clients.writer.apply(action)
        case do.Create():
            clients.writer.create(action)
        case do.Annotate():
            clients.writer.annotate(namespace, action)
        case do.AddToSecret():
            clients.writer.add_to_secret(namespace, action)
        case do.SetAuthority():
            clients.writer.set_authority(action)
        case do.Delete():
            clients.writer.delete(namespace, action)
        case do.SetFinalizer(present):
            others = tuple(name for name in resource.metadata.finalizers if name != names.FINALIZER)
            clients.writer.set_finalizers(resource, (*others, names.FINALIZER) if present else others)
        case do.SetBookieMode(bookie_id, host, read_only, token):
            clients.bookies.set_read_only(bookie_id, host, read_only, token)
        case do.ChangeMembership():
            metadata.change_membership(clients.reader.ensembles, action, namespace)
        case do.EnsureZnode(address, path):
            metadata.ensure_znode(at(address), path)
        case do.FormatLedgersRoot(address, root, access):
            metadata.format_ledgers_root(at(address), root, access)
        case do.CreateHerdRoot(address, root, access):
            metadata.create_herd_root(at(address), root, access)
        case do.Resize():
            clients.writer.resize(namespace, action)
        case do.RemoveCookie(address):
            metadata.remove_cookie(at(address), action)
        case do.RestoreCookie(address):
            metadata.restore_cookie(at(address), action)
        case do.SetRecoveryDelay(address) | do.StartBookieAudit(address):
            metadata.set_recovery_delay(at(address), action)
        case do.DeleteZnodes(address, root):
            metadata.delete_znodes(at(address), root)
        case do.ChangeTablespaceRecord(address):
            metadata.change_tablespace_record(at(address), action)
        case do.SetLogPin(address):
            metadata.set_log_pin(at(address), action)
        case do.SetArchiveExpiry(address):
            metadata.set_archive_expiry(at(address), action)
        case do.CheckpointFollower():
            nodes.checkpoint(action)
        case do.CloseLedger():
            nodes.close_ledger(action)
        case do.StartFullCheck():
            nodes.start_full_check(action)
        case do.SetCopyAside():
            nodes.set_aside(action)
        case do.BarPromotion():
            nodes.bar(action)
        case do.WakeNodes():
            nodes.wake(action)
        case do.AnswerRequest():
            clients.writer.answer_request(namespace, action)
        case do.ForgetNode(address):
            metadata.forget_node(at(address), action)
        case do.DeleteLogs(address):
            metadata.delete_logs(at(address), action)
        case do.CreateTablespace(database):
            tablespace.create_tablespace(ObjectKey(namespace, database), _login(namespace, database, clients.reader), action)
        case do.DropTablespace(database):
            tablespace.drop_tablespace(ObjectKey(namespace, database), _login(namespace, database, clients.reader), action)
        case _:
            assert_never(action)


def _login(namespace: str, database: str, reader: ClusterReader) -> Login:
    cluster = reader.kubernetes.readable(HerdDBCluster, ObjectKey(namespace, database))
    found = read_credentials(cluster, reader) if cluster is not None else None
    if cluster is None or not isinstance(found, UserCredentials):
        raise RefusedError(f"the credentials of the HerdDBCluster {database} can't be read: {found}")
    log = log_store(reader.kubernetes.readable(BookKeeperCluster, ObjectKey(namespace, cluster.spec.book_keeper_ref.name)))
    if log is None:
        unread = "its BookKeeperCluster can't be read, or reports no address yet"
        raise RefusedError(f"whether the HerdDBCluster {database} encrypts SQL is unknown: {unread}")
    tls = read_tls(cluster, log, reader)
    if (wait := why_no_login(tls, cluster)) is not None:
        raise RefusedError(f"no password is sent to SQL nodes of the HerdDBCluster {database}: {wait.message}")
    return Login(found, tls.authorities if isinstance(tls, TlsUsable) else None)
