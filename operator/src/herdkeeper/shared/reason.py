"""Why the operator waits, acts or is satisfied. The one source of condition reasons, event reasons and log fields."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """One CamelCase word, as Kubernetes' API conventions want it."""

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
    def is_asked_for(self) -> bool:
        """Whether a person asked the operator to do nothing."""
        return self in (Reason.PAUSED, Reason.PLANNED, Reason.SUSPENDED)

    @property
    def needs_person(self) -> bool:
        """Whether the operator can't go on by itself."""
        return self in _NEED_A_PERSON


_NEED_A_PERSON = frozenset(
    {
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
    }
)
