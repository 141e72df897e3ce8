"""Reasons to wait, act or be satisfied: the only source of reasons in conditions, events and logs."""

from __future__ import annotations

from enum import Enum, StrEnum


class Bearing(Enum):
    """What a reason says about the declared state."""

    NEEDS_PERSON = "the operator can't reach it by itself"
    ASKED_FOR = "a person asked the operator to do nothing"
    UNFINISHED = "it is not reached yet: the operator works on it, or waits"
    NONE = "nothing: it is reached, or this is upkeep, a repair, an answer, or subject of another condition"


class Reason(StrEnum):
    """One CamelCase word, by Kubernetes' API conventions."""

    # satisfied
    READY = "Ready"
    SETTLED = "Settled"
    SUCCEEDED = "Succeeded"
    SCHEDULED = "Scheduled"
    VERIFIED = "Verified"
    USED_IN_TIME = "UsedInTime"
    DRILLED = "Drilled"
    USERS_IN_FORCE = "UsersInForce"
    TIME_MISSED = "TimeMissed"

    # acting
    CREATING = "Creating"
    UPDATING = "Updating"
    USERS_CHANGING = "UsersChanging"
    ROLLING = "Rolling"
    FOUNDED = "Founded"
    FORMATTED = "MetadataFormatted"
    REMOVED = "Removed"
    JOINING = "Joining"
    JOINED = "Joined"
    LEAVING = "Leaving"
    LEFT = "Left"
    TABLESPACE_CREATED = "TablespaceCreated"
    TABLESPACE_MADE = "TablespaceMade"
    REPLICAS_CHANGED = "ReplicasChanged"
    LEADER_MOVED = "LeaderMoved"
    DID_NOT_LEAD = "DidNotLead"
    LEADS_AGAIN = "LeadsAgain"
    LOG_PINNED = "LogPinned"
    ARCHIVED = "Archived"
    ARCHIVE_STARTING = "ArchiveStarting"
    ARCHIVE_STANDS = "ArchiveStands"
    ARCHIVE_LAGS = "ArchiveLags"
    ARCHIVE_EXPIRES = "ArchiveExpires"
    REPLICA_SET_ASIDE = "ReplicaSetAside"
    REPLICA_REBUILT = "ReplicaRebuilt"
    REPLICA_BARRED = "ReplicaBarred"
    REPLICA_NOT_BARRED = "ReplicaNotBarred"
    SWITCHOVER_ANSWERED = "SwitchoverAnswered"
    FULL_CHECK_STARTED = "FullCheckStarted"
    FULL_CHECK_ANSWERED = "FullCheckAnswered"
    RUN_STARTED = "RunStarted"
    RUN_REQUEST_ANSWERED = "RunRequestAnswered"
    PLAINTEXT_ACCEPTED = "PlaintextAccepted"
    AUTHORITY_ROLLING = "AuthorityRolling"
    AUTHORITY_ROLL_ANSWERED = "AuthorityRollAnswered"
    RUN_EXPIRED = "RunExpired"
    RUN_GOES_ON = "RunGoesOn"
    DRILL_STARTED = "DrillStarted"
    DRILL_ENDED = "DrillEnded"
    RUNNING = "Running"
    RESTORING = "Restoring"
    RESIZING = "Resizing"
    RECOVERING = "Recovering"
    COOKIE_RESTORED = "CookieRestored"
    BOOKIE_RETIRED = "BookieRetired"
    DELETING = "Deleting"
    DATA_DELETED = "DataDeleted"
    DATA_KEPT = "DataKept"
    DRAINING = "Draining"
    RELIEVING = "Relieving"
    DRAIN_TAKEN_BACK = "DrainTakenBack"
    RETIRING = "Retiring"
    DRAINED = "Drained"

    # waiting
    WAITING_FOR_ZOOKEEPER = "WaitingForZooKeeper"
    WAITING_FOR_BOOKKEEPER = "WaitingForBookKeeper"
    WAITING_FOR_HERDDB = "WaitingForHerdDB"
    WAITING_FOR_TABLESPACE = "WaitingForTablespace"
    WAITING_FOR_CHECKPOINT = "WaitingForCheckpoint"
    WAITING_FOR_SECRET = "WaitingForSecret"  # noqa: S105 - a reason, not a password
    WAITING_FOR_FOLLOWER = "WaitingForFollower"
    WAITING_FOR_OTHERS = "WaitingForOthers"
    WAITING_FOR_WINDOW = "WaitingForWindow"
    WAITING_FOR_PODS = "WaitingForPods"
    WAITING_FOR_DEPENDENTS = "WaitingForDependents"
    TOO_FEW_BOOKIES = "TooFewBookies"
    TOO_FEW_RACKS = "TooFewRacks"
    UNDER_REPLICATED = "UnderReplicated"
    AUTORECOVERY_OFF = "AutorecoveryOff"
    BOOKIE_DOWN = "BookieDown"
    POD_STOPPING = "PodStopping"
    MOVING_LEDGERS = "MovingLedgers"
    OPEN_LEDGERS = "OpenLedgers"
    DRAIN_FAILED = "DrainFailed"
    UNREADABLE = "Unreadable"
    PAUSED = "Paused"
    PLANNED = "Planned"
    SUSPENDED = "Suspended"

    # not as declared
    STARTING = "Starting"
    MEMBERS_NOT_READY = "MembersNotReady"
    BOOKIES_NOT_READY = "BookiesNotReady"
    AUTORECOVERY_NOT_READY = "AutorecoveryNotReady"
    NODES_NOT_READY = "NodesNotReady"
    REPLICAS_NOT_READY = "ReplicasNotReady"
    NO_LEADER = "NoLeader"
    STATEMENTS_BLOCKED = "StatementsBlocked"
    NOT_VERIFIED = "NotVerified"
    NOT_DRILLED = "NotDrilled"
    REPLICA_DIFFERS = "ReplicaDiffers"
    DIFFERS_FROM_LEADER = "DiffersFromLeader"
    NODE_SILENT = "NodeSilent"
    LEADER_DIFFERS = "LeaderDiffers"
    FULL_CHECK_FAILED = "FullCheckFailed"
    REBUILT_IN_VAIN = "RebuiltInVain"
    LOG_RETAINED = "LogRetained"
    RETENTION_NEARS = "RetentionNears"
    RETENTION_OVER = "RetentionOver"
    LOG_GONE = "LogGone"
    MEMBERSHIP_CHANGING = "MembershipChanging"

    # needs a person
    INVALID_SPEC = "InvalidSpec"
    IMAGE_TOO_OLD = "ImageTooOld"
    INVALID_SECRET = "InvalidSecret"  # noqa: S105 - a reason, not a password
    UNKNOWN_CONFIG_KEYS = "UnknownConfigKeys"
    FIELDS_IGNORED = "FieldsIgnored"
    LOG_UNREPLAYABLE = "LogUnreplayable"
    DISK_REFUSES_REPLAY = "DiskRefusesReplay"
    NAME_TAKEN = "NameTaken"
    CLAIM_LOST = "ClaimLost"
    VOLUMES_REFUSED = "VolumesRefused"
    CLAIM_OF_ANOTHER = "ClaimOfAnotherEnsemble"
    QUORUM_LOST = "QuorumLost"
    NODE_LOST = "NodeLost"
    DATA_LOST = "DataLost"
    METADATA_LOST = "MetadataLost"
    ACTION_FAILED = "ActionFailed"
    FAILED = "Failed"
    RESULT_UNKNOWN = "ResultUnknown"
    RESTORE_FAILED = "RestoreFailed"
    REMOVAL_FAILED = "RemovalFailed"
    LAST_RUN_FAILED = "LastRunFailed"
    CHECKPOINT_OVERDUE = "CheckpointOverdue"
    DRILL_FAILED = "DrillFailed"
    DRILL_OVERDUE = "DrillOverdue"
    DELETION_GIVEN_UP = "DeletionGivenUp"

    @property
    def bearing(self) -> Bearing:
        """What the reason says about the declared state."""
        return _BEARINGS[self]

    @property
    def is_asked_for(self) -> bool:
        """Whether a person asked the operator to do nothing."""
        return self.bearing is Bearing.ASKED_FOR

    @property
    def needs_person(self) -> bool:
        """Whether the operator can't continue without a person."""
        return self.bearing is Bearing.NEEDS_PERSON


_BEARINGS = {
    reason: bearing
    for bearing, reasons in {
        Bearing.NEEDS_PERSON: (
            Reason.INVALID_SPEC,
            Reason.IMAGE_TOO_OLD,
            Reason.INVALID_SECRET,
            Reason.NAME_TAKEN,
            Reason.CLAIM_LOST,
            Reason.VOLUMES_REFUSED,
            Reason.CLAIM_OF_ANOTHER,
            Reason.QUORUM_LOST,
            Reason.NODE_LOST,
            Reason.DATA_LOST,
            Reason.METADATA_LOST,
            Reason.FAILED,
            Reason.RESULT_UNKNOWN,
            Reason.RESTORE_FAILED,
            Reason.REMOVAL_FAILED,
            Reason.LAST_RUN_FAILED,
            Reason.CHECKPOINT_OVERDUE,
            Reason.DRILL_FAILED,
            Reason.DRILL_OVERDUE,
            Reason.DELETION_GIVEN_UP,
        ),
        Bearing.ASKED_FOR: (Reason.PAUSED, Reason.PLANNED, Reason.SUSPENDED),
        Bearing.UNFINISHED: (
            Reason.CREATING,
            Reason.UPDATING,
            Reason.USERS_CHANGING,
            Reason.ROLLING,
            Reason.FOUNDED,
            Reason.FORMATTED,
            Reason.REMOVED,
            Reason.JOINING,
            Reason.JOINED,
            Reason.LEAVING,
            Reason.LEFT,
            Reason.TABLESPACE_CREATED,
            Reason.TABLESPACE_MADE,
            Reason.REPLICAS_CHANGED,
            Reason.LEADER_MOVED,
            Reason.RUNNING,
            Reason.RESTORING,
            Reason.RESIZING,
            Reason.BOOKIE_RETIRED,
            Reason.DELETING,
            Reason.DRAINING,
            Reason.RELIEVING,
            Reason.DRAIN_TAKEN_BACK,
            Reason.RETIRING,
            Reason.DRAINED,
            Reason.WAITING_FOR_ZOOKEEPER,
            Reason.WAITING_FOR_BOOKKEEPER,
            Reason.WAITING_FOR_HERDDB,
            Reason.WAITING_FOR_TABLESPACE,
            Reason.WAITING_FOR_CHECKPOINT,
            Reason.WAITING_FOR_SECRET,
            Reason.WAITING_FOR_FOLLOWER,
            Reason.WAITING_FOR_OTHERS,
            Reason.WAITING_FOR_WINDOW,
            Reason.WAITING_FOR_PODS,
            Reason.WAITING_FOR_DEPENDENTS,
            Reason.TOO_FEW_BOOKIES,
            Reason.TOO_FEW_RACKS,
            Reason.UNDER_REPLICATED,
            Reason.AUTORECOVERY_OFF,
            Reason.BOOKIE_DOWN,
            Reason.POD_STOPPING,
            Reason.MOVING_LEDGERS,
            Reason.OPEN_LEDGERS,
            Reason.DRAIN_FAILED,
            Reason.UNREADABLE,
            Reason.STARTING,
            Reason.MEMBERS_NOT_READY,
            Reason.BOOKIES_NOT_READY,
            Reason.AUTORECOVERY_NOT_READY,
            Reason.NODES_NOT_READY,
            Reason.REPLICAS_NOT_READY,
            Reason.NO_LEADER,
            Reason.STATEMENTS_BLOCKED,
            Reason.MEMBERSHIP_CHANGING,
            Reason.ACTION_FAILED,
        ),
        Bearing.NONE: (
            Reason.READY,
            Reason.SETTLED,
            Reason.SUCCEEDED,
            Reason.SCHEDULED,
            Reason.VERIFIED,
            Reason.USED_IN_TIME,
            Reason.DRILLED,
            Reason.USERS_IN_FORCE,
            Reason.TIME_MISSED,
            Reason.DID_NOT_LEAD,
            Reason.LEADS_AGAIN,
            Reason.LOG_PINNED,
            Reason.ARCHIVED,
            Reason.ARCHIVE_STARTING,
            Reason.ARCHIVE_STANDS,
            Reason.ARCHIVE_LAGS,
            Reason.ARCHIVE_EXPIRES,
            Reason.REPLICA_SET_ASIDE,
            Reason.REPLICA_REBUILT,
            Reason.REPLICA_BARRED,
            Reason.REPLICA_NOT_BARRED,
            Reason.SWITCHOVER_ANSWERED,
            Reason.FULL_CHECK_STARTED,
            Reason.FULL_CHECK_ANSWERED,
            Reason.RUN_STARTED,
            Reason.RUN_REQUEST_ANSWERED,
            Reason.PLAINTEXT_ACCEPTED,
            Reason.AUTHORITY_ROLLING,
            Reason.AUTHORITY_ROLL_ANSWERED,
            Reason.RUN_EXPIRED,
            Reason.RUN_GOES_ON,
            Reason.DRILL_STARTED,
            Reason.DRILL_ENDED,
            Reason.RECOVERING,
            Reason.COOKIE_RESTORED,
            Reason.DATA_DELETED,
            Reason.DATA_KEPT,
            Reason.NOT_VERIFIED,
            Reason.NOT_DRILLED,
            Reason.REPLICA_DIFFERS,
            Reason.DIFFERS_FROM_LEADER,
            Reason.NODE_SILENT,
            Reason.LEADER_DIFFERS,
            Reason.FULL_CHECK_FAILED,
            Reason.REBUILT_IN_VAIN,
            Reason.LOG_RETAINED,
            Reason.RETENTION_NEARS,
            Reason.RETENTION_OVER,
            Reason.LOG_GONE,
            Reason.UNKNOWN_CONFIG_KEYS,
            Reason.FIELDS_IGNORED,
            Reason.LOG_UNREPLAYABLE,
            Reason.DISK_REFUSES_REPLAY,
        ),
    }.items()
    for reason in reasons
}
