"""Turns summary and plan into the stored status: Ready, Progressing, the state in one sentence, the kind's own fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from herdkeeper.api.resource import Condition, Resource
from herdkeeper.planning import actions as do
from herdkeeper.planning.actions import Action, Plan
from herdkeeper.planning.refusal import Refusal
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.protocol.log_archive import ExpiryOrder
from herdkeeper.protocol.log_pin import ARCHIVE, BEGIN, SECOND_DISK
from herdkeeper.shared.conditions import FIELDS_READ, PROGRESSING, READY, RECONCILING, SERVES_AS_MADE, STALLED, condition
from herdkeeper.shared.lsn import lsn_text
from herdkeeper.shared.reason import Bearing, Reason

MOST_SENTENCES = 60
"""Maximum sentences of a shown plan. A new cluster of some bookies fits."""
_NO_SYMPTOMS = (Reason.STATEMENTS_BLOCKED, *SERVES_AS_MADE)
"""Of what a plan waits for: hanging statements, and bookies that serve as made. Rolls of other resources go on beside these bookies. They
would wait for ever for a drain or a roll that waits for what is lacking."""


@dataclass(frozen=True)
class Failed:
    """The action that failed, and the error. `for_good`: a retry can't succeed, since the namespace is being deleted. `backs_off`:
    the resource is retried later and later. Otherwise the rest of the plan was done, and a retry costs little. `done`: the action was done,
    and something undid it at once.
    """

    message: str
    for_good: bool = False
    backs_off: bool = True
    done: bool = False


def status_document(resource: Resource, summary: Summary, plan: Plan, failed: Failed | None, now: str) -> dict[str, Any]:
    """Returns the whole status. `now` (RFC 3339) becomes the transition time of changed conditions."""
    health = _health(summary.health, plan)
    progressing = _progressing(health, plan, failed)
    summed_up = kstatus_conditions(resource, health, progressing)
    states = {READY: health, PROGRESSING: progressing, **summed_up, **summary.conditions, **_fields_read(resource)}
    conditions = [_condition(resource, kind, state, now) for kind, state in states.items()]
    return {
        "observedGeneration": resource.metadata.generation,
        "message": health.message if resource.metadata.deletion_timestamp is None else _going(progressing),
        "conditions": [entry.model_dump(by_alias=True) for entry in conditions],
        **{key: value for key, value in summary.fields.items() if value is not None},
        **_unread(resource),
    }


def _going(progressing: Health) -> str:
    """`kubectl apply` of a resource that is being deleted says "unchanged", as if it stayed."""
    return f"it is being deleted: {progressing.message}. An apply does not keep it: apply it again once it is gone"


def planned(plan: Plan) -> dict[str, Any]:
    """Returns the status field `plan`: a plan that is shown instead of executed."""
    steps = (*(described(action)[1] for action in (*plan.shown, *plan.actions)), *plan.later)
    blockers = tuple(dict.fromkeys((*((plan.wait.sentence,) if plan.wait else ()), *plan.blockers)))
    return {"steps": _shortened(steps), "blockers": _shortened(blockers)}


def _kept(path: str, lsn: tuple[int, int] | None) -> str:
    if lsn is None:
        return f"No longer keeping the log {_for_whom(path)}"
    return f"Keeping the log {_for_whom(path)} from {'its beginning' if lsn == BEGIN else f'LSN {lsn_text(lsn)}'} on"


def _expiring(order: ExpiryOrder | None) -> str:
    if order is None:
        return "No longer releasing any of the archive"
    return f"Releasing the archive before LSN {lsn_text(order.keep_from)}"


def _for_whom(pin_path: str) -> str:
    whom = {ARCHIVE: "until it is archived", SECOND_DISK: "until more than one disk holds its rows"}
    return whom.get(pin_path.rpartition("/")[2], "for Checkpoints")


def _shortened(sentences: tuple[str, ...]) -> list[str]:
    more = [f"and {len(sentences) - MOST_SENTENCES} more"] if len(sentences) > MOST_SENTENCES else []
    return [sentence[:1000] for sentence in sentences[:MOST_SENTENCES]] + more


def refused_status(resource: Resource, refusals: tuple[Refusal, ...], now: str) -> dict[str, Any]:
    """Returns the status of a resource with an invalid spec. Earlier fields stay, and so does what was known to be wrong."""
    message = ". ".join(refusal.sentence for refusal in refusals)
    refused = Health("False", Reason.INVALID_SPEC, message)
    states = {READY: refused, PROGRESSING: refused, **kstatus_conditions(resource, refused, refused), **_fields_read(resource)}
    before = resource.status.conditions if resource.status is not None else ()
    wrong = [each for each in before if each.status == "False" and each.type not in (*states, FIELDS_READ)]
    conditions = [*(_condition(resource, kind, state, now) for kind, state in states.items()), *wrong]
    return {
        **stored_status(resource),
        "observedGeneration": resource.metadata.generation,
        "message": message,
        "conditions": [entry.model_dump(by_alias=True) for entry in conditions],
    }


def stored_status(resource: Resource) -> dict[str, Any]:
    """Returns the status as it was read, including unreadable fields."""
    read = resource.status.document() if resource.status is not None else {}
    return {**read, **_unread(resource)}


def _unread(resource: Resource) -> dict[str, Any]:
    """Returns unreadable status fields, which stay: another version reads them, or a person repairs them."""
    return {name: value for name, value in resource.unread.items() if name not in ("observedGeneration", "message", "conditions", "plan")}


def _fields_read(resource: Resource) -> dict[str, Health]:
    ignored = f"{', '.join(resource.ignored)}: ignored, since a newer schema has added it" if resource.ignored else ""
    unread = f"{', '.join(resource.unread_fields)}: can't be read, and left as stored" if resource.unread_fields else ""
    if not (ignored or unread):
        return {}
    message = f"{'; '.join(filter(None, (ignored, unread)))}: upgrade the operator to the version of its custom resource definitions"
    return {FIELDS_READ: Health("False", Reason.FIELDS_IGNORED, message)}


def _health(health: Health, plan: Plan) -> Health:
    """If the plan waits, its reason explains a resource that is not Ready better than the symptoms."""
    wait = plan.wait
    if wait is None or (health.status == "True" and not wait.reason.needs_person):
        return health
    if wait.reason.is_asked_for or (health.reason in _NO_SYMPTOMS and not wait.reason.needs_person):
        return health
    status: Literal["False", "Unknown"] = "Unknown" if wait.reason is Reason.UNREADABLE else "False"
    return Health(status, wait.reason, wait.message)


def _progressing(health: Health, plan: Plan, failed: Failed | None) -> Health:
    if failed is not None:
        return Health("True", Reason.ACTION_FAILED, f"{failed.message}; it will be retried")
    if plan.wait is not None and (plan.wait.reason.is_asked_for or plan.wait.reason.needs_person):
        return Health("False", plan.wait.reason, plan.wait.message)
    if actions := (*plan.shown, *plan.actions):
        reason, message = described(actions[0])
        more = f", and {len(actions) - 1} more" if len(actions) > 1 else ""
        return Health("True", reason, message + more)
    if plan.wait is not None:
        return Health("True", plan.wait.reason, plan.wait.message)
    if health.status != "True" and not health.reason.needs_person:
        return Health("True", health.reason, health.message)
    return Health("False", Reason.SETTLED if health.status == "True" else health.reason, "nothing is left to do")


def _condition(resource: Resource, kind: str, state: Health, now: str) -> Condition:
    before = condition(resource, kind)
    changed = before is None or before.status != state.status
    if before is not None and resource.metadata.deletion_timestamp is not None:
        changed = changed or before.reason != state.reason  # patience with each reason begins with it (deletion.waited_seconds)
    return Condition(
        type=kind,
        status=state.status,
        reason=state.reason,
        message=state.message[:1024],
        last_transition_time=now if changed or before is None else before.last_transition_time,
        observed_generation=resource.metadata.generation,
    )


def described(action: Action) -> tuple[Reason, str]:  # noqa: C901, PLR0911, PLR0912 - one line an action
    """Returns an action's reason and a description for conditions, events and the log."""
    match action:
        case do.Apply(manifest, _, reason):
            return reason, f"{reason} {manifest['kind']} {manifest['metadata']['name']}"
        case do.Create(manifest, reason):
            return reason, f"Creating {manifest['kind']} {manifest['metadata']['name']}"
        case do.Annotate(kind, name, _, annotations, reason, _):
            shown = ", ".join(key if value is None else f"{key}={value}" for key, value in annotations.items())
            return reason, f"{'Unmarking' if None in annotations.values() else 'Marking'} {kind} {name} with {shown}"
        case do.AddToSecret(name, _, data):
            return Reason.UPDATING, f"Adding {', '.join(sorted(data))} to the Secret {name}"
        case do.SetAuthority(_, why):
            return Reason.AUTHORITY_ROLLING, why
        case do.Delete(_, kind, name, _, reason):
            return reason, f"Deleting {kind} {name}"
        case do.SetFinalizer(_, reason, message):
            return reason, message
        case do.SetBookieMode(bookie_id, _, read_only, _, reason):
            return reason, f"Making {bookie_id} {'read-only' if read_only else 'writable'}"
        case do.ChangeMembership(_, _, _, _, _, reason, why):
            return reason, why
        case do.EnsureZnode(_, path):
            return Reason.CREATING, f"Creating {path} in ZooKeeper"
        case do.FormatLedgersRoot(_, root):
            return Reason.FORMATTED, f"Creating BookKeeper's metadata at {root} in ZooKeeper"
        case do.CreateHerdRoot(_, root):
            return Reason.CREATING, f"Creating {root} in ZooKeeper"
        case do.Resize(name, _, size):
            return Reason.RESIZING, f"Growing the claim {name} to {size}"
        case do.RemoveCookie(_, _, bookie_id):
            return Reason.BOOKIE_RETIRED, f"Removing the identity {bookie_id} from BookKeeper's metadata: no ledger names it any more"
        case do.RestoreCookie(_, _, cookie):
            return Reason.COOKIE_RESTORED, (
                f"Restoring the cookie of {cookie.bookie_id} in BookKeeper's metadata: its volumes have it and belong to this cluster"
            )
        case do.SetRecoveryDelay(_, _, seconds):
            return Reason.UPDATING, f"Setting the delay before a lost bookie's entries are copied to {seconds} s"
        case do.StartBookieAudit(_, _, seconds, _, lost):
            return Reason.RECOVERING, (
                f"Starting the auditor's check of all ledgers now instead of after {seconds} s: {', '.join(lost)} lost a disk and "
                "can't return"
            )
        case do.DeleteZnodes(_, root):
            return Reason.DELETING, f"Deleting {root} in ZooKeeper"
        case do.CreateTablespace(_, _, name, leader, _):
            return Reason.TABLESPACE_CREATED, f"Creating tablespace {name}, led by {leader}"
        case do.ChangeTablespaceRecord(_, _, record, _, why, reason):
            return reason, f"Changing tablespace {record.name}: {why}"
        case do.CheckpointFollower(_, node, tablespace):
            return Reason.LEADER_MOVED, f"Making {node} write a local checkpoint of tablespace {tablespace}"
        case do.SetCopyAside(_, node, tablespace, _, why):
            return Reason.REPLICA_SET_ASIDE, f"Setting the files of tablespace {tablespace} on {node} aside, since {why}"
        case do.BarPromotion(_, node, tablespace, _, barred, _, why):
            reason, to_do = (Reason.REPLICA_BARRED, "Keeping") if barred else (Reason.REPLICA_NOT_BARRED, "No longer keeping")
            return reason, f"{to_do} {node} from promoting itself to leader of tablespace {tablespace}, since {why}"
        case do.SetLogPin(_, path, lsn, _, why):
            return Reason.LOG_PINNED, f"{_kept(path, lsn)}, since {why}"
        case do.SetArchiveExpiry(_, _, order, _, why):
            return Reason.ARCHIVE_EXPIRES, f"{_expiring(order)}, since {why}"
        case do.WakeNodes(_, nodes):
            return Reason.LEADER_MOVED, f"Making {' and '.join(nodes)} check their tablespaces"
        case do.AnswerRequest(_, name, _, request, answer):
            return request.answered, f"Answering {request.annotation} of {name}: {answer}"
        case do.CloseLedger(_, node, name, ledger_id, reason):
            return reason, f"Making {node} close ledger {ledger_id} of tablespace {name} and open the next"
        case do.StartFullCheck(_, node, name, millis):
            stops = f"each pause of writes lasts at most {millis} ms"
            return Reason.FULL_CHECK_STARTED, f"Making {node} check all tables of tablespace {name}: {stops}"
        case do.ForgetNode(_, _, node):
            return Reason.LEFT, f"Removing {node} from HerdDB's nodes: no tablespace names it any more"
        case do.DropTablespace(_, _, name, _):
            return Reason.DELETING, f"Dropping tablespace {name}"
        case do.DeleteLogs(_, _, _, uuids):
            return Reason.DELETING, f"Deleting the log of {'all tablespaces' if uuids is None else ', '.join(uuids)}"
        case _:
            assert_never(action)


def kstatus_conditions(resource: Resource, ready: Health, progressing: Health) -> Mapping[str, Health]:
    """Returns Reconciling, Stalled or neither, by type, from Ready and Progressing of the same status. Flux and `kubectl apply --wait` of
    kpt read them by kstatus (sigs.k8s.io/cli-utils/pkg/kstatus): Stalled=True is Failed, Reconciling=True InProgress; with neither it goes
    by Ready.

    A Ready resource is also Reconciling while a declared change, such as a new image, is unfinished: a client must not stop waiting between
    two restarts. Upkeep and repairs of a Ready resource don't count.
    """
    if ready.status != "True" and ready.reason.needs_person:
        return {STALLED: _holds(ready)}
    if progressing.reason in (Reason.PAUSED, Reason.PLANNED):
        return {STALLED: _holds(progressing)} if ready.status != "True" or _is_unfinished(resource) else {}
    if ready.status != "True":
        return {RECONCILING: _holds(ready)}
    if progressing.status == "True" and progressing.reason.bearing is Bearing.UNFINISHED:
        return {RECONCILING: _holds(progressing)}
    return {}


def _is_unfinished(resource: Resource) -> bool:
    """Returns whether a paused resource has unfinished declared changes: nothing is planned meanwhile, so the last known state counts."""
    before = resource.status
    if before is None or before.observed_generation != resource.metadata.generation:
        return True
    return any(condition(resource, kind) is not None for kind in (RECONCILING, STALLED))


def _holds(state: Health) -> Health:
    return Health("True", state.reason, state.message)
