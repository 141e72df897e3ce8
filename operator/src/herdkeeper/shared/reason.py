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
    """One CamelCase word, by Kubernetes' API conventions, and what it says about the declared state."""

    bearing: Bearing

    def __new__(cls, word: str, bearing: Bearing | None = None) -> Reason:
        """Makes a member, which needs a bearing. A look-up, `Reason(word)`, does not get here."""
        if bearing is None:
            raise TypeError(f"the reason {word} has no bearing")
        reason = str.__new__(cls, word)
        reason._value_ = word
        reason.bearing = bearing
        return reason

    # satisfied
    READY = "Ready", Bearing.NONE
    SETTLED = "Settled", Bearing.NONE
    SUCCEEDED = "Succeeded", Bearing.NONE
    SCHEDULED = "Scheduled", Bearing.NONE
    VERIFIED = "Verified", Bearing.NONE
    USED_IN_TIME = "UsedInTime", Bearing.NONE
    DRILLED = "Drilled", Bearing.NONE
    USERS_IN_FORCE = "UsersInForce", Bearing.NONE
    TIME_MISSED = "TimeMissed", Bearing.NONE

    # acting
    CREATING = "Creating", Bearing.UNFINISHED
    UPDATING = "Updating", Bearing.UNFINISHED
    USERS_CHANGING = "UsersChanging", Bearing.UNFINISHED
    ROLLING = "Rolling", Bearing.UNFINISHED
    FOUNDED = "Founded", Bearing.UNFINISHED
    FORMATTED = "MetadataFormatted", Bearing.UNFINISHED
    REMOVED = "Removed", Bearing.UNFINISHED
    JOINING = "Joining", Bearing.UNFINISHED
    JOINED = "Joined", Bearing.UNFINISHED
    LEAVING = "Leaving", Bearing.UNFINISHED
    LEFT = "Left", Bearing.UNFINISHED
    TABLESPACE_CREATED = "TablespaceCreated", Bearing.UNFINISHED
    TABLESPACE_MADE = "TablespaceMade", Bearing.UNFINISHED
    REPLICAS_CHANGED = "ReplicasChanged", Bearing.UNFINISHED
    LEADER_MOVED = "LeaderMoved", Bearing.UNFINISHED
    DID_NOT_LEAD = "DidNotLead", Bearing.NONE
    LEADS_AGAIN = "LeadsAgain", Bearing.NONE
    LOG_PINNED = "LogPinned", Bearing.NONE
    ARCHIVED = "Archived", Bearing.NONE
    ARCHIVE_STARTING = "ArchiveStarting", Bearing.NONE
    ARCHIVE_STANDS = "ArchiveStands", Bearing.NONE
    ARCHIVE_LAGS = "ArchiveLags", Bearing.NONE
    ARCHIVE_EXPIRES = "ArchiveExpires", Bearing.NONE
    REPLICA_SET_ASIDE = "ReplicaSetAside", Bearing.NONE
    REPLICA_REBUILT = "ReplicaRebuilt", Bearing.NONE
    REPLICA_BARRED = "ReplicaBarred", Bearing.NONE
    REPLICA_NOT_BARRED = "ReplicaNotBarred", Bearing.NONE
    SWITCHOVER_ANSWERED = "SwitchoverAnswered", Bearing.NONE
    FULL_CHECK_STARTED = "FullCheckStarted", Bearing.NONE
    FULL_CHECK_ANSWERED = "FullCheckAnswered", Bearing.NONE
    RUN_STARTED = "RunStarted", Bearing.NONE
    RUN_REQUEST_ANSWERED = "RunRequestAnswered", Bearing.NONE
    PLAINTEXT_ACCEPTED = "PlaintextAccepted", Bearing.NONE
    AUTHORITY_ROLLING = "AuthorityRolling", Bearing.NONE
    AUTHORITY_ROLL_ANSWERED = "AuthorityRollAnswered", Bearing.NONE
    RUN_EXPIRED = "RunExpired", Bearing.NONE
    RUN_GOES_ON = "RunGoesOn", Bearing.NONE
    DRILL_STARTED = "DrillStarted", Bearing.NONE
    DRILL_ENDED = "DrillEnded", Bearing.NONE
    RUNNING = "Running", Bearing.UNFINISHED
    RESTORING = "Restoring", Bearing.UNFINISHED
    RESIZING = "Resizing", Bearing.UNFINISHED
    RECOVERING = "Recovering", Bearing.NONE
    COOKIE_RESTORED = "CookieRestored", Bearing.NONE
    BOOKIE_RETIRED = "BookieRetired", Bearing.UNFINISHED
    DELETING = "Deleting", Bearing.UNFINISHED
    DATA_DELETED = "DataDeleted", Bearing.NONE
    DATA_KEPT = "DataKept", Bearing.NONE
    DRAINING = "Draining", Bearing.UNFINISHED
    RELIEVING = "Relieving", Bearing.UNFINISHED
    DRAIN_TAKEN_BACK = "DrainTakenBack", Bearing.UNFINISHED
    RETIRING = "Retiring", Bearing.UNFINISHED
    DRAINED = "Drained", Bearing.UNFINISHED

    # waiting
    WAITING_FOR_ZOOKEEPER = "WaitingForZooKeeper", Bearing.UNFINISHED
    WAITING_FOR_BOOKKEEPER = "WaitingForBookKeeper", Bearing.UNFINISHED
    WAITING_FOR_HERDDB = "WaitingForHerdDB", Bearing.UNFINISHED
    WAITING_FOR_TABLESPACE = "WaitingForTablespace", Bearing.UNFINISHED
    WAITING_FOR_CHECKPOINT = "WaitingForCheckpoint", Bearing.UNFINISHED
    WAITING_FOR_SECRET = "WaitingForSecret", Bearing.UNFINISHED
    WAITING_FOR_FOLLOWER = "WaitingForFollower", Bearing.UNFINISHED
    WAITING_FOR_OTHERS = "WaitingForOthers", Bearing.UNFINISHED
    WAITING_FOR_WINDOW = "WaitingForWindow", Bearing.UNFINISHED
    WAITING_FOR_PODS = "WaitingForPods", Bearing.UNFINISHED
    WAITING_FOR_DEPENDENTS = "WaitingForDependents", Bearing.UNFINISHED
    TOO_FEW_BOOKIES = "TooFewBookies", Bearing.UNFINISHED
    TOO_FEW_RACKS = "TooFewRacks", Bearing.UNFINISHED
    UNDER_REPLICATED = "UnderReplicated", Bearing.UNFINISHED
    AUTORECOVERY_OFF = "AutorecoveryOff", Bearing.UNFINISHED
    BOOKIE_DOWN = "BookieDown", Bearing.UNFINISHED
    POD_STOPPING = "PodStopping", Bearing.UNFINISHED
    SCANNING_LEDGERS = "ScanningLedgers", Bearing.UNFINISHED
    MOVING_LEDGERS = "MovingLedgers", Bearing.UNFINISHED
    OPEN_LEDGERS = "OpenLedgers", Bearing.UNFINISHED
    DRAIN_FAILED = "DrainFailed", Bearing.UNFINISHED
    UNREADABLE = "Unreadable", Bearing.UNFINISHED
    PAUSED = "Paused", Bearing.ASKED_FOR
    PLANNED = "Planned", Bearing.ASKED_FOR
    SUSPENDED = "Suspended", Bearing.ASKED_FOR

    # not as declared
    STARTING = "Starting", Bearing.UNFINISHED
    MEMBERS_NOT_READY = "MembersNotReady", Bearing.UNFINISHED
    BOOKIES_NOT_READY = "BookiesNotReady", Bearing.UNFINISHED
    BOOKIES_MISSING = "BookiesMissing", Bearing.UNFINISHED
    AUTORECOVERY_NOT_READY = "AutorecoveryNotReady", Bearing.UNFINISHED
    AUTORECOVERY_DISABLED = "AutorecoveryDisabled", Bearing.UNFINISHED
    NODES_NOT_READY = "NodesNotReady", Bearing.UNFINISHED
    REPLICAS_NOT_READY = "ReplicasNotReady", Bearing.UNFINISHED
    NO_LEADER = "NoLeader", Bearing.UNFINISHED
    STATEMENTS_BLOCKED = "StatementsBlocked", Bearing.UNFINISHED
    NOT_VERIFIED = "NotVerified", Bearing.NONE
    NOT_DRILLED = "NotDrilled", Bearing.NONE
    REPLICA_DIFFERS = "ReplicaDiffers", Bearing.NONE
    DIFFERS_FROM_LEADER = "DiffersFromLeader", Bearing.NONE
    NODE_SILENT = "NodeSilent", Bearing.NONE
    LEADER_DIFFERS = "LeaderDiffers", Bearing.NONE
    FULL_CHECK_FAILED = "FullCheckFailed", Bearing.NONE
    REBUILT_IN_VAIN = "RebuiltInVain", Bearing.NONE
    LOG_RETAINED = "LogRetained", Bearing.NONE
    RETENTION_NEARS = "RetentionNears", Bearing.NONE
    RETENTION_OVER = "RetentionOver", Bearing.NONE
    LOG_GONE = "LogGone", Bearing.NONE
    MEMBERSHIP_CHANGING = "MembershipChanging", Bearing.UNFINISHED

    # needs a person
    INVALID_SPEC = "InvalidSpec", Bearing.NEEDS_PERSON
    IMAGE_TOO_OLD = "ImageTooOld", Bearing.NEEDS_PERSON
    INVALID_SECRET = "InvalidSecret", Bearing.NEEDS_PERSON
    UNKNOWN_CONFIG_KEYS = "UnknownConfigKeys", Bearing.NONE
    FIELDS_IGNORED = "FieldsIgnored", Bearing.NONE
    LOG_UNREPLAYABLE = "LogUnreplayable", Bearing.NONE
    DISK_REFUSES_REPLAY = "DiskRefusesReplay", Bearing.NONE
    NAME_TAKEN = "NameTaken", Bearing.NEEDS_PERSON
    CLAIM_LOST = "ClaimLost", Bearing.NEEDS_PERSON
    VOLUMES_REFUSED = "VolumesRefused", Bearing.NEEDS_PERSON
    CLAIM_OF_ANOTHER = "ClaimOfAnotherEnsemble", Bearing.NEEDS_PERSON
    QUORUM_LOST = "QuorumLost", Bearing.NEEDS_PERSON
    NODE_LOST = "NodeLost", Bearing.NEEDS_PERSON
    DATA_LOST = "DataLost", Bearing.NEEDS_PERSON
    METADATA_LOST = "MetadataLost", Bearing.NEEDS_PERSON
    ACTION_FAILED = "ActionFailed", Bearing.UNFINISHED
    FAILED = "Failed", Bearing.NEEDS_PERSON
    RESULT_UNKNOWN = "ResultUnknown", Bearing.NEEDS_PERSON
    RESTORE_FAILED = "RestoreFailed", Bearing.NEEDS_PERSON
    REMOVAL_FAILED = "RemovalFailed", Bearing.NEEDS_PERSON
    LAST_RUN_FAILED = "LastRunFailed", Bearing.NEEDS_PERSON
    CHECKPOINT_OVERDUE = "CheckpointOverdue", Bearing.NEEDS_PERSON
    DRILL_FAILED = "DrillFailed", Bearing.NEEDS_PERSON
    DRILL_OVERDUE = "DrillOverdue", Bearing.NEEDS_PERSON
    DELETION_GIVEN_UP = "DeletionGivenUp", Bearing.NEEDS_PERSON

    @property
    def is_asked_for(self) -> bool:
        """Whether a person asked the operator to do nothing."""
        return self.bearing is Bearing.ASKED_FOR

    @property
    def needs_person(self) -> bool:
        """Whether the operator can't continue without a person."""
        return self.bearing is Bearing.NEEDS_PERSON
