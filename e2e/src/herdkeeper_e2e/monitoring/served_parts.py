"""The parts of ZooKeeper, BookKeeper and HerdDB, by the names of their metrics, and when a person looks at each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from herdkeeper_e2e.monitoring.served import Served


@dataclass(frozen=True)
class Part:
    """`names` is a pattern of its metrics' names."""

    title: str
    names: str
    about: str


JVM = Part(
    "The JVM of each server",
    r"(jvm|process)_\w+|(max|open)_file_descriptor_count",
    "When a server is killed for its memory, pauses, or takes more CPU than others: heap, direct memory (network buffers), garbage "
    "collection, threads, open files.",
)
PARTS: Mapping[str, tuple[Part, ...]] = {
    "zookeeper": (
        Part(
            "Requests as clients see them",
            r"(avg|max|min)_latency|(read|update)latency|outstanding_requests|packets_\w+|uptime|large_requests_rejected|stale_re\w+"
            r"|(request_)?throttle\w+|bytes_received_count|(read|write)_per_namespace",
            "Look here first when clients find ZooKeeper slow: how long requests take, how many wait, and which were refused or held back. "
            "`key` is the first folder of the path.",
        ),
        Part(
            "Connections and sessions",
            r"\w*connection\w*|cnxn_\w+|\w*sessions(_expired)?|close_session_\w+|socket_closing_time|revalidate_count"
            r"|(auth_failed|insecure_admin)_count|ensemble_auth_\w+|non_mtls_\w+|\w*handshake\w*",
            "When clients lose their sessions, or can't connect: rejected and dropped connections, expired sessions, failed logins, TLS.",
        ),
        Part(
            "Answers and network buffers",
            r"response_\w+|\w+_client_response_size|netty_\w+",
            "When a member sends much, or its direct memory grows: sizes of answers, hits of the caches of answers, Netty's queue.",
        ),
        Part(
            "Preparation of writes",
            r"prep_\w+|outstanding_changes_\w+",
            "When writes wait although the disk is fast: the queue before a member's first step, on the one that leads.",
        ),
        Part(
            "The disk",
            r"sync_proc\w+|fsynctime|(snap|restore)\w+|startup_\w+|dbinittime",
            "When writes are slow, or a member starts slowly: fsyncs of the transaction log and the queue before them, snapshots, loading.",
        ),
        Part(
            "Proposals and the quorum",
            r"(proposal|quorum|om|learner|propagation)_\w+|ack_latency|commit_(count|propagation_latency)|(last|max|min)_proposal_size"
            r"|pending_syncs|skip_learner_\w+",
            "When the disk of the leading member is fast and writes are slow all the same: how long the other members take to get and to "
            "acknowledge a proposal, and what waits for them. `key` is the number of a member.",
        ),
        Part(
            "Commits and reads",
            r"\w*(commit_?proc|final_proc|session_queue|sessions?_queues?)\w*|commit_process_time|\w+_committed_time_ms|request_commit_queued",
            "When reads are slow while many clients write: the step that applies commits and answers reads in the order of each session.",
        ),
        Part(
            "Elections and followers",
            r"leader_\w+|learners|synced_\w+|looking_count|election_time|unavailable_time|quit_leading_\w+|(diff|inflight)_\w+"
            r"|(follower|observer)_sync_time|digest_mismatches_count|unrecoverable_error_count",
            "After another member took the lead, or when one does not catch up: elections, time without a leader, followers in step, and "
            "what those that came back were sent.",
        ),
        Part(
            "Znodes, watches and quotas",
            r"znode_count|ephemerals_count|approximate_data_size|\w*watch\w*|quota_\w+",
            "When the memory of members grows: number and size of znodes and watches. Quotas have series where some are set.",
        ),
    ),
    "bookie": (
        Part(
            "State and traffic",
            r"bookie_SERVER_STATUS|bookie_(READ|WRITE)_BYTES|bookie_BOOKIE_\w+",
            "To see whether a bookie takes writes, how much it does, and how long its storage takes for it.",
        ),
        Part(
            "Requests",
            r"bookkeeper_server_[A-Z_]+",
            "When SQL nodes find a bookie slow: the time of each kind of request, and what waits or is rejected. The names with `REQUEST` "
            "include the time in the queue.",
        ),
        Part(
            "Threads of requests",
            r"bookkeeper_server_(Bookie\w+|thread_executor_\w+)",
            "When requests wait in a queue: whether one thread has all the work.",
        ),
        Part(
            "Journal",
            r"bookie_(journal|JOURNAL)_\w+",
            "When commits are slow: each waits for a forced write of the journal. Long ones mean a slow disk.",
        ),
        Part(
            "Write cache and flushes",
            r"bookie_(write_cache_\w+|flush\w*|throttled_write|add_entry|sync_thread_time|db_storage_thread_time)",
            "When writes stall at times: the cache was full before its flush to the ledger volume ended.",
        ),
        Part(
            "Read cache and reads",
            r"bookie_(read_cache_\w+|read_entry|read_entrylog_time|read_locations_index_time|readahead_\w+|lookup_entry_location"
            r"|get_last_entry_in_ledger)",
            "When followers, checkpoints or audits read slowly: what the caches answered, and the time of the index and of the entry logs.",
        ),
        Part(
            "Entry logs and garbage collection",
            r"bookie_([A-Z_]+|entry_log_usage_\S+)",
            "When a ledger volume fills although ledgers were deleted: how full the entry logs are, and what was freed.",
        ),
        Part(
            "Ledger directories and their index",
            r"bookie_(ledger_\S+|ledgers_count|entries_count)",
            "When a bookie became read-only: how full each volume is, and how many directories still take entries.",
        ),
        Part(
            "The bookie's requests to ZooKeeper",
            r"bookie_bookie_(zk|watcher)_\S+",
            "When bookies lose their sessions, restart or start slowly.",
        ),
    ),
    "autorecovery": (
        Part(
            "Auditor",
            r"auditor_\w+",
            "When ledgers stay under-replicated, or nobody notices a lost bookie: what the checks found, and how long they took. Only the "
            "pod whose auditor was elected counts here.",
        ),
        Part(
            "Replication worker",
            r"replication_worker_\w+",
            "When copies take long after a bookie was lost: what each pod has read, written and given up.",
        ),
        Part(
            "Autorecovery's BookKeeper client",
            r"bookkeeper_client_bookkeeper_client_\w+",
            "When the auditor or a worker is slow: how bookies answer it.",
        ),
        Part(
            "Threads of autorecovery's client",
            r"bookkeeper_client_(BookKeeperClientWorker|thread_executor)_\w+",
            "When the client is slow and the bookies are not: whether work waits in its queues.",
        ),
        Part(
            "Autorecovery's requests to ZooKeeper",
            r"bookkeeper_client_(zk|watcher)_\S+",
            "When marks of ledgers are found late, or autorecovery restarts.",
        ),
    ),
    "herddb": (
        Part(
            "Statements",
            r"runningstatements|network_\w+",
            "When clients wait: statements under way, and answers that wait to be sent.",
        ),
        Part(
            "Checkpoints of tablespaces",
            r"<tablespace>_\S+",
            "When statements stall from time to time, or a node's log grows: how long a node's own checkpoints take. Names have the "
            "tablespace and the table; the tablespace with the name of the node is HerdDB's own.",
        ),
        Part(
            "Files of tables",
            r"filedatastore_\w+",
            "When queries are slow: many reads of pages mean that a table does not fit into the node's memory.",
        ),
        Part(
            "The node's BookKeeper client",
            r"bookkeeper_client_\w+",
            "When commits are slow on a node and the bookies' journals are not: how long entries take until the quorum has them, and "
            "changes of the ensemble.",
        ),
        Part(
            "Threads of the node's client",
            r"(BookKeeperClientWorker|thread_executor)_\w+",
            "When the client is slow and the bookies are not: whether work waits in its queues.",
        ),
        Part(
            "The BookKeeper client's requests to ZooKeeper",
            r"(zk|watcher)_\S+",
            "When a node is slow to open or to create ledgers, such as during a change of the leader.",
        ),
    ),
}
"""By the servers' component label. A metric belongs to the first part that matches, but the JVM's to `JVM`."""


def part_of(metric: Served) -> Part:
    """Returns the part that a metric belongs to. Raises LookupError if there is none."""
    for part in (JVM, *PARTS[metric.server]):
        if re.fullmatch(part.names, metric.name):
            return part
    raise LookupError(f"{metric.name} of {metric.server} belongs to no part: extend a pattern of {Part.__module__}")
