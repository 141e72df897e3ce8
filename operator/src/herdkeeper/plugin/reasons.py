"""Explanations of all reasons, and what to do. A reason's message always has more details: names, numbers and commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from herdkeeper.shared.reason import Reason

NOTHING = "Nothing."
WAIT = "Wait."
COMPARE = "Compare it with the log: `checkpoint --verify Follower`."


@dataclass(frozen=True)
class Explained:
    """What a reason means, and what to do."""

    means: str
    do: str = NOTHING


EXPLAINED: Mapping[Reason, Explained] = {
    # satisfied
    Reason.READY: Explained("It serves as declared."),
    Reason.SETTLED: Explained("Everything is as declared. Nothing is in progress."),
    Reason.SUCCEEDED: Explained("The run succeeded."),
    Reason.SCHEDULED: Explained("The next run starts at its time."),
    Reason.VERIFIED: Explained("Each follower matched the log in its last comparison."),
    Reason.USED_IN_TIME: Explained("No part of the log that is still needed is about to be released."),
    Reason.DRILLED: Explained("The newest restore drill restored everything."),
    Reason.USERS_IN_FORCE: Explained("Every SQL node accepts the users that the Secrets name, and no others."),
    Reason.TIME_MISSED: Explained(
        "A scheduled time passed without a run; the message says why.",
        "Nothing; the next run starts at its time. For a run now: `run-now`.",
    ),
    # acting
    Reason.CREATING: Explained("Objects are being created.", WAIT),
    Reason.UPDATING: Explained("Objects are being changed.", WAIT),
    Reason.USERS_CHANGING: Explained(
        "The named SQL nodes have not loaded the changed users yet.", "Wait some minutes, then read the node's log."
    ),
    Reason.ROLLING: Explained("Servers are restarted one by one with their changed template.", WAIT),
    Reason.FOUNDED: Explained("A ZooKeeper member has voted. From now on its claim holds data."),
    Reason.FORMATTED: Explained("BookKeeper's metadata was created in ZooKeeper."),
    Reason.REMOVED: Explained("An object that is no longer needed was removed."),
    Reason.JOINING: Explained("A ZooKeeper member joins the ensemble. It gets its vote once it is in step.", WAIT),
    Reason.JOINED: Explained("A ZooKeeper member has its vote."),
    Reason.LEAVING: Explained("A ZooKeeper member loses its vote before its pod is deleted.", WAIT),
    Reason.LEFT: Explained("A member or SQL node has left. Its claim is marked or deleted, as `deletionPolicy` says."),
    Reason.TABLESPACE_CREATED: Explained("The tablespace was created in HerdDB."),
    Reason.TABLESPACE_MADE: Explained("The Tablespace has recorded which tablespace of HerdDB belongs to it."),
    Reason.REPLICAS_CHANGED: Explained("The list of replicas was changed."),
    Reason.LEADER_MOVED: Explained("Another SQL node leads. The event names the old and the new leader, and why."),
    Reason.DID_NOT_LEAD: Explained(
        "A SQL node failed to take over a leadership. It gets none for some minutes.",
        "Read the node's log: `logs`. To try it at once: `switchover`.",
    ),
    Reason.LEADS_AGAIN: Explained("The SQL node may lead again."),
    Reason.LOG_PINNED: Explained("The position from which the log is kept has changed, with what needs it."),
    Reason.ARCHIVED: Explained("The archive keeps up with the log."),
    Reason.ARCHIVE_STARTING: Explained("The archiver copies what the log has.", "Wait; if its pod does not run, the message says why."),
    Reason.ARCHIVE_STANDS: Explained(
        "The archiver's last run failed. The log is kept until it is archived.",
        "Fix what the message names; it is retried automatically.",
    ),
    Reason.ARCHIVE_LAGS: Explained(
        "Nothing was archived for three intervals and a minute.", "Read the log of the pod `<tablespace>-archive-…`: `logs`."
    ),
    Reason.ARCHIVE_EXPIRES: Explained("The position from which the archive is kept has changed, by `spec.log.archive.retention`."),
    Reason.REPLICA_SET_ASIDE: Explained("A SQL node sets the files of a wrong replica aside. They are kept as evidence.", WAIT),
    Reason.REPLICA_REBUILT: Explained("The replica was rebuilt from the log.", COMPARE),
    Reason.REPLICA_BARRED: Explained("A SQL node must not promote itself: its replica has different rows.", WAIT),
    Reason.REPLICA_NOT_BARRED: Explained("A SQL node may promote itself again."),
    Reason.SWITCHOVER_ANSWERED: Explained(
        "A request for a switchover was answered: done or refused.", "Read the answer; ask again if it was refused."
    ),
    Reason.FULL_CHECK_STARTED: Explained("All rows of the leader are compared with each follower's.", WAIT),
    Reason.FULL_CHECK_ANSWERED: Explained(
        "A request for a full check was answered: done or refused.", "Read the answer; ask again if it was refused."
    ),
    Reason.RUN_STARTED: Explained("A schedule has started a run."),
    Reason.PLAINTEXT_ACCEPTED: Explained(
        "The servers of a stack accept plain text: every client that reaches their ports can read and change its data.",
        "Nothing, if you chose this; otherwise move the stack to certificates (docs/how-to/certificates.md).",
    ),
    Reason.AUTHORITY_ROLLING: Explained(
        "Another authority takes over from one that signs the certificates of a stack.", "Wait; the message names what it waits for."
    ),
    Reason.AUTHORITY_ROLL_ANSWERED: Explained(
        "A request to have other authorities take over was answered: done or refused.", "Read the answer."
    ),
    Reason.RUN_REQUEST_ANSWERED: Explained(
        "A request for a run was answered: done or refused.", "Read the answer; ask again if it was refused."
    ),
    Reason.RUN_EXPIRED: Explained("A run was deleted, as the schedule's retention says."),
    Reason.RUN_GOES_ON: Explained("A paused audit resumes with another Job."),
    Reason.DRILL_STARTED: Explained("A restore drill has started."),
    Reason.DRILL_ENDED: Explained("The objects of a restore drill were removed."),
    Reason.RUNNING: Explained("The run's Job is running.", WAIT),
    Reason.RESTORING: Explained("Rows are being loaded from the checkpoint, or compared with it.", WAIT),
    Reason.RESIZING: Explained("Volumes are growing.", "Wait; if the message says `FileSystemResizePending`, delete the pod."),
    Reason.RECOVERING: Explained("A bookie has lost a disk. Another one starts, and ledgers are copied.", WAIT),
    Reason.COOKIE_RESTORED: Explained("A bookie's cookie was missing in ZooKeeper and was restored from its disks."),
    Reason.BOOKIE_RETIRED: Explained("A bookie is permanently gone. No ledger names it."),
    Reason.DELETING: Explained("The resource and what it owns are being deleted.", WAIT),
    Reason.DATA_DELETED: Explained("The data was deleted, as `deletionPolicy: Delete` says."),
    Reason.DATA_KEPT: Explained("The data stays. The event says why."),
    Reason.DRAINING: Explained("A bookie is being drained.", WAIT),
    Reason.RELIEVING: Explained("Leaderships move away from a SQL node before it is restarted or removed.", WAIT),
    Reason.DRAIN_TAKEN_BACK: Explained("A drain was cancelled. The bookie stays and becomes writable again."),
    Reason.RETIRING: Explained("The identity of a drained bookie is being removed. The drain can no longer be cancelled.", WAIT),
    Reason.DRAINED: Explained("No ledger names the bookie any more, and every entry was read back elsewhere."),
    # waiting
    Reason.WAITING_FOR_ZOOKEEPER: Explained(
        "The ZooKeeperCluster it refers to is not Ready, or does not exist.",
        "Do what the status of the ZooKeeperCluster says, or create it if there is none.",
    ),
    Reason.WAITING_FOR_BOOKKEEPER: Explained(
        "The BookKeeperCluster it refers to is not Ready, or does not exist.",
        "Do what the status of the BookKeeperCluster says, or create it if there is none.",
    ),
    Reason.WAITING_FOR_HERDDB: Explained(
        "The HerdDBCluster it refers to is not Ready, or does not exist.",
        "Do what the status of the HerdDBCluster says, or create it if there is none.",
    ),
    Reason.WAITING_FOR_TABLESPACE: Explained("A Tablespace must exist, or change, before this continues.", "Check the named Tablespace."),
    Reason.WAITING_FOR_CHECKPOINT: Explained("The Checkpoint it is to be made from has not succeeded.", "Wait, or create the Checkpoint."),
    Reason.WAITING_FOR_SECRET: Explained("A Secret does not exist, or lacks an entry.", "Create the Secret, or add the entry."),
    Reason.WAITING_FOR_FOLLOWER: Explained(
        "A follower must be settled first.", "Wait; if it does not settle, check the SQL nodes: `status`."
    ),
    Reason.WAITING_FOR_OTHERS: Explained(
        "Another part of the stack is disrupted or changing. One change happens at a time.", "Check what the message names."
    ),
    Reason.WAITING_FOR_WINDOW: Explained("The audit is paused until its window opens.", "Wait, or change the hours of `spec.window`."),
    Reason.WAITING_FOR_PODS: Explained(
        "The run's pod is not running yet.", "Wait; if it lasts, the pod says why: a volume, the image, room on a node."
    ),
    Reason.WAITING_FOR_DEPENDENTS: Explained(
        "Other resources still need the one to be deleted.", "Delete them first, or wait until their runs have ended."
    ),
    Reason.TOO_FEW_BOOKIES: Explained("Too few bookies would remain writable.", "Raise `spec.bookies` of the BookKeeperCluster."),
    Reason.TOO_FEW_RACKS: Explained(
        "Copies could not be in as many racks as required.",
        "Start a bookie in another zone, or lower `spec.placement.minRacksPerWriteQuorum`.",
    ),
    Reason.UNDER_REPLICATED: Explained("Ledgers lack copies. Autorecovery creates them.", "Wait; see `status.auditor`."),
    Reason.AUTORECOVERY_OFF: Explained(
        "Ledgers would not be copied: autorecovery is off, or no auditor is elected.",
        "Set `spec.autoRecovery.enabled`, or enable it with BookKeeper's shell. If no auditor is elected yet, wait.",
    ),
    Reason.BOOKIE_DOWN: Explained("A bookie is away. It is neither retired nor skipped while it is away.", "Get its pod running again."),
    Reason.POD_STOPPING: Explained("A pod is still stopping.", WAIT),
    Reason.SCANNING_LEDGERS: Explained("The metadata of all ledgers is being read. The message tells how far it is.", WAIT),
    Reason.MOVING_LEDGERS: Explained(
        "Ledgers of a draining bookie are being copied to others.", "Wait; see `ledgers` and `secondsLeft` of its drain."
    ),
    Reason.OPEN_LEDGERS: Explained("Open ledgers are still being written to the bookie.", "Make the named writers write, or stop them."),
    Reason.DRAIN_FAILED: Explained(
        "Something could not be copied, read back or removed.", "Fix what the message names, then delete the failed Job."
    ),
    Reason.UNREADABLE: Explained(
        "Something that must be known can't be read. Until then, nothing that could destroy data happens.",
        "Restore what the message names.",
    ),
    Reason.PAUSED: Explained("The annotation `herdkeeper.io/paused` stops every change.", "To continue: `resume`."),
    Reason.PLANNED: Explained(
        "The annotation `herdkeeper.io/plan` stops every change. `status.plan` shows what would be done.",
        "To carry that out: `resume`. If you don't want it, revert the change first.",
    ),
    Reason.SUSPENDED: Explained("`spec.suspend` of the schedule is true: no run is due.", "Set `spec.suspend` to false."),
    # not as declared
    Reason.STARTING: Explained("It is starting for the first time.", "Wait; if it lasts, check the pods: `status`."),
    Reason.MEMBERS_NOT_READY: Explained(
        "Some ZooKeeper members do not serve, or have no vote yet. The others keep the quorum.", "Check the pods that the message names."
    ),
    Reason.BOOKIES_NOT_READY: Explained("Some bookies are not writable.", "Check the pods that the message names."),
    Reason.BOOKIES_MISSING: Explained(
        "Declared bookies are not made yet. All others are writable, and rolls go on.",
        "Wait; if it lasts, the condition `Progressing` says what refuses them, such as a quota.",
    ),
    Reason.AUTORECOVERY_NOT_READY: Explained(
        "Not all pods of autorecovery serve. While none does, lost copies are not replaced.", "Check the pods that the message names."
    ),
    Reason.AUTORECOVERY_DISABLED: Explained(
        "Somebody disabled autorecovery with BookKeeper's tools. All bookies serve, but lost copies are not replaced.",
        "Enable it with the command that the message names.",
    ),
    Reason.NODES_NOT_READY: Explained("Some SQL nodes do not serve.", "Check the pods that the message names."),
    Reason.REPLICAS_NOT_READY: Explained(
        "Replicas of the tablespace are not settled.", "Wait; if it lasts, check the SQL nodes: `status`."
    ),
    Reason.NO_LEADER: Explained(
        "Nobody leads the tablespace, so it accepts no statements. Of a ZooKeeperCluster: no member leads, so nothing can be written.",
        "Restore what the message names: a SQL node with a replica, or the storage.",
    ),
    Reason.STATEMENTS_BLOCKED: Explained(
        "Statements have waited long for the lock of the tablespace on its leader, so statements that change rows hang.",
        "Wait for a long CREATE INDEX or checkpoint; otherwise delete the leader's pod: no acknowledged write is lost.",
    ),
    Reason.NOT_VERIFIED: Explained("A follower has not been compared with the log yet.", COMPARE),
    Reason.NOT_DRILLED: Explained("No restore drill has ended yet.", WAIT),
    Reason.REPLICA_DIFFERS: Explained(
        "A follower differs from the log. Its replica is rebuilt.", "Wait; `Progressing` says what it waits for."
    ),
    Reason.DIFFERS_FROM_LEADER: Explained("A follower differs from the leader. It is unknown which of the two is wrong.", COMPARE),
    Reason.NODE_SILENT: Explained("The machine of a pod does not report.", "Check the machine; it may recover by itself."),
    Reason.LEADER_DIFFERS: Explained(
        "The leader differs from the log. Another replica takes over as soon as one can.",
        "If there is no other replica, raise `spec.replicas`.",
    ),
    Reason.FULL_CHECK_FAILED: Explained("A full check found that a follower differs from the leader.", COMPARE),
    Reason.REBUILT_IN_VAIN: Explained(
        "A rebuilt replica differs again: the memory or disk of its machine may be bad, or the Checkpoint.",
        "Tell these apart as docs/how-to/a-follower-differs.md says.",
    ),
    Reason.LOG_RETAINED: Explained(
        "Log past its retention is kept, since it is needed. It takes space on the bookies.",
        "Free what the message names, e.g. make a `checkpoint`.",
    ),
    Reason.RETENTION_NEARS: Explained(
        "Three quarters of the retention are over for log that is still needed.", "Make a `checkpoint`, or see what delays the archive."
    ),
    Reason.RETENTION_OVER: Explained(
        "The retention is over for log that is still needed. It may be deleted at any moment.", "Make a `checkpoint` at once."
    ),
    Reason.LOG_GONE: Explained(
        "The log that the next Checkpoint would continue from is gone.",
        "Make a `checkpoint` now: it starts from a follower's tables if one can be verified.",
    ),
    Reason.MEMBERSHIP_CHANGING: Explained("The membership of the ensemble is being changed.", WAIT),
    # needs a person
    Reason.INVALID_SPEC: Explained(
        "A field is invalid, or contradicts another resource. Nothing is changed.", "Change the field that the message names."
    ),
    Reason.IMAGE_TOO_OLD: Explained("A server's image is too old.", "Change `spec.image`."),
    Reason.INVALID_SECRET: Explained("A Secret's content is unusable.", "Correct the entry that the message names."),
    Reason.UNKNOWN_CONFIG_KEYS: Explained(
        "Lines of `spec.config` have no effect: the server does not know them.", "Correct or remove the lines that the message names."
    ),
    Reason.FIELDS_IGNORED: Explained(
        "The operator ignores fields that it does not know, or the custom resource definitions lack fields of its status.",
        "Bring both to one version, or remove the fields.",
    ),
    Reason.LOG_UNREPLAYABLE: Explained(
        "A SQL node can't apply an entry of the log. Or the log's list names a ledger that is lost or another log's, or is lost itself. "
        "No node could lead after the leader.",
        "Keep the leader running, and do what the message says.",
    ),
    Reason.DISK_REFUSES_REPLAY: Explained(
        "A SQL node can't apply an entry of the log, since its disk refuses the write: it may be full.",
        "Make room or grow the volume claim, or rebuild the replica on another disk. The node tries again each half minute.",
    ),
    Reason.NAME_TAKEN: Explained("Another object has a name that the operator needs.", "Rename or delete the other object."),
    Reason.CLAIM_LOST: Explained("A bookie lost a disk, and the operator needs a decision.", "Read the message: it has the command."),
    Reason.VOLUMES_REFUSED: Explained(
        "A bookie's volumes don't match its identity. It does not start.",
        "Bind the right volumes, or give them up with the command in the message.",
    ),
    Reason.CLAIM_OF_ANOTHER: Explained(
        "A volume claim remains from another ensemble of the same name.", "Delete it with the command in the message."
    ),
    Reason.QUORUM_LOST: Explained(
        "Too few ZooKeeper members serve. Nothing can be written.",
        "Restore the members that the message names. If their data may be gone for good: `recover`.",
    ),
    Reason.NODE_LOST: Explained(
        "A pod hangs on a machine that does not report.",
        "Restart the machine. Only if it is off for certain, mark it so with the command in the message.",
    ),
    Reason.DATA_LOST: Explained(
        "All claims of a founded ensemble are gone, or a tablespace is.", "Restore them, or delete the resource and create it again."
    ),
    Reason.METADATA_LOST: Explained(
        "ZooKeeper has no metadata, although bookies have volumes.", "Connect the ensemble that has the metadata."
    ),
    Reason.ACTION_FAILED: Explained("The API server or a server refused an action. It is retried.", "Fix what the message names."),
    Reason.FAILED: Explained("The run failed. It is not retried.", "Fix what the message names, then create another run."),
    Reason.RESULT_UNKNOWN: Explained("The run succeeded, but its result is unknown.", "Read its pod's log, and create another run."),
    Reason.RESTORE_FAILED: Explained(
        "The restore failed. What is loaded stays.",
        "Fix what the message names, then delete the Job `<name>-restore`: the next one continues.",
    ),
    Reason.REMOVAL_FAILED: Explained(
        "Files of a deleted Checkpoint could not be removed.", "Fix what the message names, then delete the Job `<name>-removal`."
    ),
    Reason.LAST_RUN_FAILED: Explained("The newest run of the schedule failed.", "Fix what the message names; for a run now: `run-now`."),
    Reason.CHECKPOINT_OVERDUE: Explained(
        "The newest verified Checkpoint is older than two periods of the schedule.",
        "See why the last runs failed; for a run now: `run-now`.",
    ),
    Reason.DRILL_FAILED: Explained(
        "A restore drill did not restore everything.", "Fix what the message names, then make another Checkpoint: `run-now`."
    ),
    Reason.DRILL_OVERDUE: Explained(
        "No restore drill succeeded for two periods of its schedule.",
        "See `status.lastDrill`: a drill has run for long, or never started.",
    ),
    Reason.DELETION_GIVEN_UP: Explained("The resource is gone, and data was left behind.", "Remove what the event names by hand."),
}
"""A test requires every reason here."""


_BY_WORD = {reason.value: reason for reason in Reason}


def reason_of(word: str) -> Reason | None:
    """Returns the reason of a condition, or None. Kubernetes and newer operators have unknown ones."""
    return _BY_WORD.get(word)


NEEDS_PERSON, LOOK, ASKED_FOR, NOTHING_LEFT = "needs a person", "see the message", "it was requested", "nothing more to do"
"""Results of `group`."""


def group(reason: Reason) -> str:
    """Returns the urgency of a reason, in words."""
    if reason.needs_person:
        return NEEDS_PERSON
    if reason.is_asked_for:
        return ASKED_FOR
    return NOTHING_LEFT if EXPLAINED[reason].do == NOTHING else LOOK
