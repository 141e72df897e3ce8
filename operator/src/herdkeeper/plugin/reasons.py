"""What each reason means, and what a person does about it. The message beside a reason always says more: names, numbers and commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from herdkeeper.shared.reason import Reason

NOTHING = "Nothing."
WAIT = "Wait."


@dataclass(frozen=True)
class Explained:
    """A reason in a sentence, and what to do in another."""

    means: str
    do: str = NOTHING


EXPLAINED: Mapping[Reason, Explained] = {
    # satisfied
    Reason.READY: Explained("It serves as declared."),
    Reason.SETTLED: Explained("All is as declared. Nothing is done or waited for."),
    Reason.SUCCEEDED: Explained("The run ended well."),
    Reason.SCHEDULED: Explained("The next run comes at its time."),
    Reason.VERIFIED: Explained("Each follower had the rows that the log says when it was compared last."),
    Reason.USED_IN_TIME: Explained("No part of the log that somebody still needs is about to be released."),
    Reason.DRILLED: Explained("The newest restore drill restored everything that it should."),
    Reason.USERS_IN_FORCE: Explained("Every SQL node lets in whom the Secrets name, and nobody else."),
    Reason.TIME_MISSED: Explained(
        "A time of the schedule passed without a run; the message says why.", "Nothing; the next time counts. For a run now: `run-now`."
    ),
    # acting
    Reason.CREATING: Explained("Objects are being made.", WAIT),
    Reason.UPDATING: Explained("Objects are being changed.", WAIT),
    Reason.USERS_CHANGING: Explained(
        "The named SQL nodes have not taken up the changed users yet.", "Wait some minutes; then read the node's log."
    ),
    Reason.ROLLING: Explained("Servers are restarted one by one with their changed template.", WAIT),
    Reason.FOUNDED: Explained("A ZooKeeper member has voted. From now on its claim counts as data."),
    Reason.FORMATTED: Explained("BookKeeper's metadata was made in ZooKeeper."),
    Reason.REMOVED: Explained("An object that is not needed any more was removed."),
    Reason.JOINING: Explained("A ZooKeeper member joins the ensemble. It gets its vote once it is in step.", WAIT),
    Reason.JOINED: Explained("A ZooKeeper member has its vote."),
    Reason.LEAVING: Explained("A ZooKeeper member loses its vote before its pod goes.", WAIT),
    Reason.LEFT: Explained("A member or SQL node has left. Its claim is marked or deleted, as `deletionPolicy` says."),
    Reason.TABLESPACE_CREATED: Explained("The tablespace was made in HerdDB."),
    Reason.TABLESPACE_MADE: Explained("The Tablespace has noted which tablespace of HerdDB is its own."),
    Reason.REPLICAS_CHANGED: Explained("The list of SQL nodes with a copy was changed."),
    Reason.LEADER_MOVED: Explained("Another SQL node leads. The event says from whom, to whom, and why."),
    Reason.DID_NOT_LEAD: Explained(
        "A SQL node was given the leadership and did not take it over. It is given none for some minutes.",
        "Read `lastError` in the node's log. To try it at once: `switchover`.",
    ),
    Reason.LEADS_AGAIN: Explained("The SQL node is no longer kept from leading."),
    Reason.LOG_PINNED: Explained("From where on the log is kept was changed, since somebody needs it or needs it no more."),
    Reason.ARCHIVED: Explained("The archive keeps up with the log."),
    Reason.ARCHIVE_STARTING: Explained("The archiver copies what the log has.", "Wait; if its pod does not run, the message says why."),
    Reason.ARCHIVE_STANDS: Explained(
        "The archiver's last run failed. The log is kept until it is archived.", "Mend what the message names; it is tried again by itself."
    ),
    Reason.ARCHIVE_LAGS: Explained(
        "Nothing was archived for three looks and a minute.", "Read the log of the pod `<tablespace>-archive-…`: `logs`."
    ),
    Reason.ARCHIVE_EXPIRES: Explained("From where on the archive is kept was changed, by `spec.log.archive.retention`."),
    Reason.REPLICA_SET_ASIDE: Explained("A SQL node moves a wrong copy aside. It is kept as evidence.", WAIT),
    Reason.REPLICA_REBUILT: Explained("The copy was made anew from the log.", "Have it compared: `checkpoint`."),
    Reason.REPLICA_BARRED: Explained("A SQL node may not make itself the leader: its copy has other rows.", WAIT),
    Reason.REPLICA_NOT_BARRED: Explained("A SQL node may make itself the leader again."),
    Reason.SWITCHOVER_ANSWERED: Explained(
        "A request for another leader was answered: done or refused.", "Read the answer; ask again if it was refused."
    ),
    Reason.FULL_CHECK_STARTED: Explained("All rows of the leader are compared with each follower's.", WAIT),
    Reason.FULL_CHECK_ANSWERED: Explained(
        "A request for a full check was answered: done or refused.", "Read the answer; ask again if it was refused."
    ),
    Reason.RUN_STARTED: Explained("A schedule has made a run."),
    Reason.RUN_REQUEST_ANSWERED: Explained(
        "A request for a run was answered: done or refused.", "Read the answer; ask again if it was refused."
    ),
    Reason.RUN_EXPIRED: Explained("A run was deleted, as the schedule's retention says."),
    Reason.RUN_GOES_ON: Explained("An audit that paused goes on with another Job."),
    Reason.DRILL_STARTED: Explained("A restore drill has begun."),
    Reason.DRILL_ENDED: Explained("What a restore drill had used was removed."),
    Reason.RUNNING: Explained("The run's Job works.", WAIT),
    Reason.RESTORING: Explained("Rows are loaded from the checkpoint, or compared with it.", WAIT),
    Reason.RESIZING: Explained("Volumes are growing.", "Wait; with `FileSystemResizePending` delete the pod."),
    Reason.RECOVERING: Explained("A bookie has lost a disk. Another one starts, and ledgers are copied.", WAIT),
    Reason.COOKIE_RESTORED: Explained("A bookie's cookie was gone from ZooKeeper and was put back, as its disks have it."),
    Reason.BOOKIE_RETIRED: Explained("A bookie is gone for good. No ledger names it."),
    Reason.DELETING: Explained("The resource and what it owns are being deleted.", WAIT),
    Reason.DATA_DELETED: Explained("The data was deleted, as `deletionPolicy: Delete` says."),
    Reason.DATA_KEPT: Explained("The data stays. The event says why."),
    Reason.DRAINING: Explained("A bookie that shall leave is being emptied.", WAIT),
    Reason.RELIEVING: Explained("Leaderships move away from a SQL node before it is restarted or leaves.", WAIT),
    Reason.DRAIN_TAKEN_BACK: Explained("A bookie that should leave stays, and is made writable again."),
    Reason.RETIRING: Explained("The identity of a drained bookie is being removed. It can't be taken back now.", WAIT),
    Reason.DRAINED: Explained("No ledger names the bookie any more, and every entry was read back elsewhere."),
    # waiting
    Reason.WAITING_FOR_ZOOKEEPER: Explained(
        "The ZooKeeperCluster it refers to is not Ready, or not there.", "Look at the ZooKeeperCluster: `status`."
    ),
    Reason.WAITING_FOR_BOOKKEEPER: Explained(
        "The BookKeeperCluster it refers to is not Ready, or not there.", "Look at the BookKeeperCluster: `status`."
    ),
    Reason.WAITING_FOR_HERDDB: Explained(
        "The HerdDBCluster it refers to is not Ready, or not there.", "Look at the HerdDBCluster: `status`."
    ),
    Reason.WAITING_FOR_TABLESPACE: Explained(
        "A Tablespace has to change, or to be there, before this goes on.", "Look at the Tablespace that is named."
    ),
    Reason.WAITING_FOR_CHECKPOINT: Explained("The Checkpoint it is to be made from has not succeeded.", "Wait, or create the Checkpoint."),
    Reason.WAITING_FOR_SECRET: Explained("A Secret is not there, or lacks an entry.", "Create the Secret, or add the entry."),
    Reason.WAITING_FOR_FOLLOWER: Explained(
        "A follower has to be settled first.", "Wait; if it does not settle, look at the SQL nodes: `status`."
    ),
    Reason.WAITING_FOR_OTHERS: Explained(
        "Something else of the stack is disrupted or changed. One thing happens at a time.", "Look at what the message names."
    ),
    Reason.WAITING_FOR_WINDOW: Explained("The audit is paused until its window opens.", "Wait, or change the hours of `spec.window`."),
    Reason.WAITING_FOR_PODS: Explained(
        "The pod of the run does not run yet.", "Wait; if it lasts, the pod says why: a volume, the image, room on a node."
    ),
    Reason.WAITING_FOR_DEPENDENTS: Explained(
        "Others still need what shall be deleted.", "Delete those first, or wait until their runs are over."
    ),
    Reason.TOO_FEW_BOOKIES: Explained("Too few bookies would stay writable.", "Raise `spec.bookies` of the BookKeeperCluster."),
    Reason.TOO_FEW_RACKS: Explained(
        "Copies could not be in as many racks as they should.",
        "Have a bookie start in another zone, or lower `spec.placement.minRacksPerWriteQuorum`.",
    ),
    Reason.UNDER_REPLICATED: Explained("Ledgers lack copies. Autorecovery makes them.", "Wait; look at `status.auditor`."),
    Reason.AUTORECOVERY_OFF: Explained(
        "Nobody would copy ledgers: autorecovery is off, or no auditor is elected.",
        "Set `spec.autoRecovery.enabled`, or switch it on with BookKeeper's shell.",
    ),
    Reason.BOOKIE_DOWN: Explained("A bookie is away. One that is away is never retired or passed over.", "Bring its pod back."),
    Reason.POD_STOPPING: Explained("A pod is still stopping.", WAIT),
    Reason.MOVING_LEDGERS: Explained(
        "Ledgers of a bookie that leaves are being copied to others.", "Wait; look at `ledgers` and `secondsLeft` of its drain."
    ),
    Reason.OPEN_LEDGERS: Explained(
        "Open ledgers still have writers that send to the bookie.", "Have the named writers write, or end them."
    ),
    Reason.DRAIN_FAILED: Explained(
        "Something could not be copied, read back or removed.", "Mend what the message names, then delete the failed Job."
    ),
    Reason.UNREADABLE: Explained(
        "Something that has to be known can't be read. Nothing that could destroy data happens meanwhile.",
        "Bring back what the message names.",
    ),
    Reason.PAUSED: Explained("The annotation `herdkeeper.io/paused` stops every change.", "To go on: `resume`."),
    Reason.PLANNED: Explained(
        "The annotation `herdkeeper.io/plan` stops every change. `status.plan` shows what would be done.", "To go on: `resume`."
    ),
    Reason.SUSPENDED: Explained("`spec.suspend` of the schedule is true: no run is due.", "Set `spec.suspend` to false."),
    # not as declared
    Reason.STARTING: Explained("It starts for the first time.", "Wait; if it lasts, look at the pods: `status`."),
    Reason.MEMBERS_NOT_READY: Explained(
        "ZooKeeper members do not serve. The others keep the quorum.", "Look at the pods that the message names."
    ),
    Reason.BOOKIES_NOT_READY: Explained("Bookies do not serve as writable ones.", "Look at the pods that the message names."),
    Reason.AUTORECOVERY_NOT_READY: Explained(
        "No pod of autorecovery serves. Lost copies are not made again.", "Look at the pods that the message names."
    ),
    Reason.NODES_NOT_READY: Explained("SQL nodes do not serve.", "Look at the pods that the message names."),
    Reason.REPLICAS_NOT_READY: Explained(
        "Copies of the tablespace are not settled.", "Wait; if it lasts, look at the SQL nodes: `status`."
    ),
    Reason.NO_LEADER: Explained(
        "Nobody leads. The tablespace takes no statements.", "Bring back what the message names: a SQL node with a copy, or the storage."
    ),
    Reason.STATEMENTS_BLOCKED: Explained(
        "A SQL node leads, and statements that change rows hang there: all, or more and more of them.",
        "Wait for a long CREATE INDEX or checkpoint; else delete the leader's pod: nothing acknowledged is lost.",
    ),
    Reason.NOT_VERIFIED: Explained("A follower was not compared with the log yet.", "Have it compared: `checkpoint`."),
    Reason.NOT_DRILLED: Explained("No restore drill has ended yet.", WAIT),
    Reason.REPLICA_DIFFERS: Explained(
        "A follower has other rows than the log says. Its copy is made anew.", "Wait; `Progressing` says what it waits for."
    ),
    Reason.DIFFERS_FROM_LEADER: Explained(
        "A follower has other rows than the leader. Which of the two is wrong is not known.", "Have it compared with the log: `checkpoint`."
    ),
    Reason.NODE_SILENT: Explained("The machine of a pod does not report.", "Look at the machine; it may come back by itself."),
    Reason.LEADER_DIFFERS: Explained(
        "The leader has other rows than the log says. Another one takes over as soon as one can.",
        "With no other replica raise `spec.replicas`.",
    ),
    Reason.FULL_CHECK_FAILED: Explained(
        "A full check found a follower with other rows than the leader.", "Have it compared with the log: `checkpoint`."
    ),
    Reason.REBUILT_IN_VAIN: Explained(
        "A copy that was made anew differs again.", "Suspect the machine's memory or disk, or the checkpoint; see the page."
    ),
    Reason.LOG_RETAINED: Explained(
        "Log past its retention is kept, since somebody needs it. It takes room on the bookies.",
        "Free what the message names, e.g. make a `checkpoint`.",
    ),
    Reason.RETENTION_NEARS: Explained(
        "Three quarters of the retention are over for log that somebody needs.", "Make a `checkpoint`, or see what holds the archive up."
    ),
    Reason.RETENTION_OVER: Explained(
        "The retention is over for log that somebody needs. What is not kept goes at any moment.", "Make a `checkpoint` at once."
    ),
    Reason.LOG_GONE: Explained(
        "The log that the next Checkpoint would go on from is gone.",
        "Make a `checkpoint` now: it begins with a follower's tables where one can be proven.",
    ),
    Reason.MEMBERSHIP_CHANGING: Explained("The membership of the ensemble is being changed.", WAIT),
    # needs a person
    Reason.INVALID_SPEC: Explained(
        "A field can't be as it is, or contradicts another resource. Nothing is changed.", "Change the field that the message names."
    ),
    Reason.IMAGE_TOO_OLD: Explained("A server's image is older than what is asked of it.", "Change `spec.image`."),
    Reason.INVALID_SECRET: Explained("A Secret's content can't be used.", "Correct the entry that the message names."),
    Reason.UNKNOWN_CONFIG_KEYS: Explained(
        "Lines of `spec.config` have no effect: the server does not know them.", "Correct or remove the lines that the message names."
    ),
    Reason.FIELDS_IGNORED: Explained(
        "The operator ignores fields that it does not know: its version is another one than the schema's.",
        "Upgrade the operator, or remove the fields.",
    ),
    Reason.LOG_UNREPLAYABLE: Explained(
        "A SQL node can't apply an entry of the log. Nobody could lead after the leader.",
        "Keep the leader running, and do what the message says.",
    ),
    Reason.NAME_TAKEN: Explained("Another object has the name of one that has to be made.", "Rename or delete the other object."),
    Reason.CLAIM_LOST: Explained("A bookie lost a disk, and the operator must not go on alone.", "Read the message: it has the command."),
    Reason.VOLUMES_REFUSED: Explained(
        "A bookie's volumes are not what its identity says. It does not start.",
        "Bind the right volumes, or give them up with the command in the message.",
    ),
    Reason.CLAIM_OF_ANOTHER: Explained(
        "A volume claim stayed from another ensemble of the same name.", "Delete it with the command in the message."
    ),
    Reason.QUORUM_LOST: Explained(
        "Too few ZooKeeper members serve. Nothing can be written.", "Bring back the members that the message names."
    ),
    Reason.NODE_LOST: Explained(
        "A pod hangs on a machine that does not report.", "Bring the machine back, or mark it as off with the command in the message."
    ),
    Reason.DATA_LOST: Explained(
        "All claims of a founded ensemble, or a tablespace, are gone.", "Bring them back, or delete the resource and create it anew."
    ),
    Reason.METADATA_LOST: Explained(
        "ZooKeeper has no metadata, though bookies have volumes.", "Connect the ensemble that has the metadata."
    ),
    Reason.ACTION_FAILED: Explained("The API server or a server refused an action. It is tried again.", "Mend what the message names."),
    Reason.FAILED: Explained("The run failed. It is not repeated.", "Mend what the message names, then create another run."),
    Reason.RESULT_UNKNOWN: Explained("The run ended well, but what it found is not known.", "Read its pod's log, and create another run."),
    Reason.RESTORE_FAILED: Explained(
        "The restore failed. What is loaded stays.",
        "Mend what the message names, then delete the Job `<name>-restore`: the next one goes on.",
    ),
    Reason.REMOVAL_FAILED: Explained(
        "Files of a deleted Checkpoint could not be removed.", "Mend what the message names, then delete the Job `<name>-removal`."
    ),
    Reason.LAST_RUN_FAILED: Explained("The newest run of the schedule failed.", "Mend what the message names; for a run now: `run-now`."),
    Reason.CHECKPOINT_OVERDUE: Explained(
        "The newest verified Checkpoint is older than two periods of the schedule.",
        "See why the last runs failed; for a run now: `run-now`.",
    ),
    Reason.DRILL_FAILED: Explained(
        "A restore drill did not restore what it should.", "Mend what the message names, then have another Checkpoint made: `run-now`."
    ),
    Reason.DRILL_OVERDUE: Explained(
        "No restore drill succeeded for two periods of its schedule.", "Look at `status.lastDrill`: one runs for long, or never began."
    ),
    Reason.DELETION_GIVEN_UP: Explained("The resource is gone, and data was left behind.", "Remove what the event names by hand."),
}
"""A test demands that each reason is here."""


_BY_WORD = {reason.value: reason for reason in Reason}


def reason_of(word: str) -> Reason | None:
    """The reason that a condition names. Kubernetes and newer operators have some that are not known here."""
    return _BY_WORD.get(word)


NEEDS_PERSON, LOOK, ASKED_FOR, NOTHING_LEFT = "needs a person", "look at the message", "somebody asked for it", "nothing is left to do"
"""What `group` returns."""


def group(reason: Reason) -> str:
    """How urgent a reason is, in words."""
    if reason.needs_person:
        return NEEDS_PERSON
    if reason.is_asked_for:
        return ASKED_FOR
    return NOTHING_LEFT if EXPLAINED[reason].do == NOTHING else LOOK
