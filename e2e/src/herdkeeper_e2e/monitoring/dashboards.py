"""The three dashboards: the whole stack, BookKeeper, and SQL with its log. The chart has them as JSON (`make generate`).

Every legend has the namespace: stacks in two namespaces usually have the same names.
"""

from __future__ import annotations

from herdkeeper_e2e.monitoring.dashboard import Dashboard, Look, Panel, Query, Variable, red_below, red_from, row

_RESOURCE = 'namespace=~"$namespace"'
_BOOKKEEPER = 'kind="BookKeeperCluster", namespace=~"$namespace", name=~"$name"'
_HERDDB = 'kind="HerdDBCluster", namespace=~"$namespace", name=~"$name"'
_TABLESPACE = f'{_HERDDB}, tablespace=~"$tablespace"'
_OF_TABLESPACE = 'namespace=~"$namespace", tablespace=~"$tablespace"'
_ZOOKEEPER = 'kind="ZooKeeperCluster", namespace=~"$namespace"'
_OF_BOOKKEEPER = 'namespace=~"$namespace", bookkeeper=~"$name"'
_LASTING = 'kind!~"Checkpoint|ReplicationAudit"'
"""Without runs, which are not Ready before they have succeeded."""
_NAMESPACE = Variable("namespace", "Namespace", "herdkeeper_resource_ready")
_SECONDS, _MILLISECONDS, _REQUESTS, _RATE = Look("s"), Look("ms"), Look("reqps"), Look("ops")


def _none(words: str) -> str:
    return f"{words}, or the operator is not read."


def _by_pod(query: str) -> Query:
    """One line for each pod: a pod that restarts gets another address, which is one of its metrics' labels."""
    return Query(f"max by (namespace, pod) ({query})", "{{namespace}}/{{pod}}")


def _by_tablespace_and_pod(query: str) -> Query:
    return Query(f"max by (namespace, tablespace, pod) ({query})", "{{namespace}} {{tablespace}} {{pod}}")


def _age(metric: str, of: str, label: str) -> Query:
    """How long ago a moment is that the operator tells for each `label`."""
    return Query(f"time() - max by (namespace, {label}) ({metric}{{{of}}})", "{{namespace}}/{{" + label + "}}")


def _requests(title: str, about: str, kind: str, *, success: bool = True) -> Panel:
    """Requests to bookies that add, or read, an entry."""
    count = f'bookkeeper_server_{kind}_ENTRY_REQUEST_count{{{_BOOKKEEPER}, success="{str(success).lower()}"}}'
    return Panel(title, about, _by_pod(f"rate({count}[5m])"), _REQUESTS)


def _slowest(title: str, about: str, metric: str) -> Panel:
    return Panel(title, about, _by_pod(f'{metric}{{{_BOOKKEEPER}, success="true", quantile="0.99"}}'), _MILLISECONDS)


STACK = Dashboard(
    uid="herdkeeper-stack",
    title="Herdkeeper / Stack",
    variables=(_NAMESPACE,),
    rows=(
        row(
            "Resources",
            Panel(
                "Not Ready",
                "Resources that do not serve as declared; runs that have not succeeded are left out. Should be 0.",
                Query(f"sum(max by (kind, namespace, name) (herdkeeper_resource_ready{{{_RESOURCE}, {_LASTING}}}) == bool 0)", "not Ready"),
                Look(limits=red_from(1)),
                "stat",
                _none("There is no resource"),
            ),
            Panel(
                "Conditions that are False",
                "What is wrong, by resource, with its reason. `kubectl describe` has the sentence.",
                Query(
                    "max by (kind, namespace, name, type, reason) "
                    f'(herdkeeper_resource_condition{{{_RESOURCE}, type!="Progressing", {_LASTING}}}) == 0',
                    "{{namespace}}/{{name}}",
                ),
                kind="table",
                if_none=_none("None is False"),
            ),
            Panel(
                "Servers that are not read",
                "They are down, restart, or are out of Prometheus' reach. Should be 0.",
                Query(
                    'sum by (namespace, kind) (up{component!="", kind=~"ZooKeeperCluster|BookKeeperCluster|HerdDBCluster", '
                    f"{_RESOURCE}}} == bool 0)",
                    "{{namespace}} {{kind}}",
                ),
            ),
        ),
        row(
            "Recovery",
            Panel(
                "Age of the newest verified Checkpoint",
                "By ScheduledCheckpoint. It grows to one period of the schedule and falls back.",
                _age("herdkeeper_checkpoint_last_verified_timestamp_seconds", _RESOURCE, "schedule"),
                _SECONDS,
                if_none=_none("No schedule has a verified Checkpoint"),
            ),
            Panel(
                "Recovery window",
                "How far back moments can be restored from the archive.",
                _age("herdkeeper_recovery_window_begins_timestamp_seconds", _RESOURCE, "tablespace"),
                _SECONDS,
                if_none=_none("No moment can be restored from an archive"),
            ),
            Panel(
                "What the archive lacks",
                "How old the newest archived moment is: what a loss of all bookies would cost.",
                _age("herdkeeper_archive_current_timestamp_seconds", _RESOURCE, "tablespace"),
                _SECONDS,
                if_none=_none("No log is archived"),
            ),
            Panel(
                "Certificates expire in",
                "Of the SQL port. An alert begins 14 days before.",
                Query(
                    f"(min by (namespace, herddb) (herdkeeper_certificate_expires_timestamp_seconds{{{_RESOURCE}}}) - time()) / 86400",
                    "{{namespace}}/{{herddb}}",
                ),
                Look("suffix:days", limits=red_below(14)),
                "stat",
                _none("No SQL port has a certificate"),
            ),
        ),
        row(
            "Proof",
            Panel(
                "Findings of the newest audits",
                "What there is, by severity. Critical: fewer good copies than were acknowledged.",
                Query(
                    f'max by (namespace, bookkeeper, depth, severity) (herdkeeper_audit_findings{{{_RESOURCE}, severity!="Pending"}}) > 0',
                    "{{namespace}}/{{bookkeeper}} {{depth}} {{severity}}",
                ),
                if_none=_none("No finding, or no audit yet"),
            ),
            Panel(
                "Age of the last complete audit",
                "By depth. An alert begins after two weeks without a deep one.",
                Query(
                    f"time() - max by (namespace, bookkeeper, depth) (herdkeeper_audit_last_complete_timestamp_seconds{{{_RESOURCE}}})",
                    "{{namespace}}/{{bookkeeper}} {{depth}}",
                ),
                Look("s", limits=red_from(14 * 86_400)),
                if_none=_none("No audit was complete"),
            ),
            Panel(
                "Restore drills",
                "How long the newest successful one took, by schedule.",
                Query(f"max by (namespace, schedule) (herdkeeper_restore_drill_seconds{{{_RESOURCE}}})", "{{namespace}}/{{schedule}}"),
                _SECONDS,
                if_none=_none("No drill has succeeded"),
            ),
        ),
        row(
            "ZooKeeper",
            Panel("Request latency", "Average of each member. Its disk decides.", _by_pod(f"avg_latency{{{_ZOOKEEPER}}}"), _MILLISECONDS),
            Panel(
                "Requests that wait",
                "By member. Above zero for long: the ensemble is too slow.",
                _by_pod(f"outstanding_requests{{{_ZOOKEEPER}}}"),
            ),
            Panel("Znodes", "By member; ledgers, mostly.", _by_pod(f"znode_count{{{_ZOOKEEPER}}}")),
            Panel(
                "Time that the leader has led",
                "Of each ensemble's leader. It begins anew when another member leads.",
                _by_pod(f"leader_uptime{{{_ZOOKEEPER}}} / 1000"),
                _SECONDS,
            ),
        ),
        row(
            "The operator",
            Panel(
                "Looks at resources",
                "By outcome. Failed ones should be none.",
                Query("sum by (outcome) (rate(herdkeeper_reconcile_total[5m]))", "{{outcome}}"),
                _RATE,
            ),
            Panel(
                "Duration of looks",
                "99 of 100 are shorter.",
                Query("histogram_quantile(0.99, sum by (le, kind) (rate(herdkeeper_reconcile_seconds_bucket[5m])))", "{{kind}}"),
                _SECONDS,
            ),
            Panel(
                "Writes",
                "To Kubernetes, ZooKeeper and SQL nodes. A settled system gets none.",
                Query("sum by (verb) (rate(herdkeeper_writes_total[5m]))", "{{verb}}"),
                _RATE,
            ),
            Panel("Queue", "Resources that wait to be looked at, or for their time.", Query("sum(herdkeeper_queue_keys)", "keys")),
        ),
    ),
)

BOOKKEEPER = Dashboard(
    uid="herdkeeper-bookkeeper",
    title="Herdkeeper / BookKeeper",
    variables=(_NAMESPACE, Variable("name", "BookKeeperCluster", "bookie_SERVER_STATUS")),
    rows=(
        row(
            "State",
            Panel(
                "Bookies that are not writable",
                "Read-only (full, failed or drained), not registered, or not read. Should be 0 but for drains.",
                Query(
                    f'sum(bookie_SERVER_STATUS{{{_BOOKKEEPER}}} < bool 1 or up{{{_BOOKKEEPER}, component="bookie"}} == bool 0)', "bookies"
                ),
                Look(limits=red_from(1)),
                "stat",
            ),
            Panel(
                "State of each bookie",
                "A gap: its metrics could not be read.",
                _by_pod(f"bookie_SERVER_STATUS{{{_BOOKKEEPER}}}"),
                Look(states=((1, "writable", "green"), (0, "read-only", "orange"), (-1, "not registered", "red"))),
                "state-timeline",
            ),
            Panel(
                "Ledgers that lack a copy",
                "As BookKeeper's auditor marked them, counted up to 1000.",
                Query(
                    f"max by (namespace, bookkeeper) (herdkeeper_under_replicated_ledgers{{{_OF_BOOKKEEPER}}})",
                    "{{namespace}}/{{bookkeeper}}",
                ),
            ),
            Panel(
                "For how long",
                "Since the oldest of these marks. An alert begins after an hour.",
                _age("herdkeeper_under_replicated_since_timestamp_seconds", _OF_BOOKKEEPER, "bookkeeper"),
                Look("s", limits=red_from(3600)),
                if_none=_none("No ledger lacks a copy"),
            ),
        ),
        row(
            "Disks",
            Panel(
                "Ledger volumes in use",
                "The fullest of each bookie. An alert begins at 85 %; at 95 % a bookie turns read-only.",
                _by_pod(f'{{__name__=~"bookie_ledger_dir_.*_usage", {_BOOKKEEPER}}}'),
                Look("percent", limits=((None, "green"), (85, "orange"), (95, "red"))),
            ),
            Panel("Writable ledger directories", "By bookie. 0 means read-only.", _by_pod(f"bookie_ledger_writable_dirs{{{_BOOKKEEPER}}}")),
        ),
        row(
            "Adds",
            _requests("Added", "Requests a second, by bookie.", "ADD"),
            Panel(
                "Bytes written", "Of entries, a second, by bookie.", _by_pod(f"rate(bookie_WRITE_BYTES{{{_BOOKKEEPER}}}[5m])"), Look("Bps")
            ),
            _slowest("Latency of adds", "99 of 100 are faster. SQL commits wait for it.", "bookkeeper_server_ADD_ENTRY_REQUEST"),
            _requests("Failed adds", "A second, by bookie. Should be 0.", "ADD", success=False),
        ),
        row(
            "Reads",
            _requests("Read", "Requests a second, by bookie: of SQL nodes that boot or follow, jobs and other clients.", "READ"),
            Panel("Bytes read", "A second, by bookie.", _by_pod(f"rate(bookie_READ_BYTES{{{_BOOKKEEPER}}}[5m])"), Look("Bps")),
            _requests("Failed reads", "A second, by bookie. Reads of an entry that is not there are among them.", "READ", success=False),
        ),
        row(
            "Journal",
            _slowest("Latency of journal syncs", "99 of 100 are faster: the disk's own speed.", "bookie_journal_JOURNAL_SYNC"),
            Panel(
                "Journal queue",
                "Entries that wait for the journal.",
                Query(f"sum by (namespace, pod) (bookie_journal_JOURNAL_QUEUE_SIZE{{{_BOOKKEEPER}}})", "{{namespace}}/{{pod}}"),
            ),
        ),
    ),
)

SQL = Dashboard(
    uid="herdkeeper-sql",
    title="Herdkeeper / SQL and log",
    variables=(
        _NAMESPACE,
        Variable("name", "HerdDBCluster", "herdkeeper_node_volume_bytes"),
        Variable("tablespace", "Tablespace", "herdkeeper_node_leads"),
    ),
    rows=(
        row(
            "Leaders",
            Panel(
                "Who leads",
                "By tablespace and node. A gap: the node's metrics could not be read.",
                _by_tablespace_and_pod(f"herdkeeper_node_leads{{{_TABLESPACE}}}"),
                Look(states=((1, "leads", "blue"), (0, "follows", "super-light-blue"))),
                "state-timeline",
            ),
            Panel(
                "Entries behind the leader",
                "Of followers in the leader's ledger, not in an older one. Reads at different moments add some seconds.",
                _by_tablespace_and_pod(
                    f"max by (namespace, name, tablespace) (herdkeeper_node_log_entry{{{_TABLESPACE}}} "
                    "and herdkeeper_node_leads == 1)"
                    f" - on (namespace, name, tablespace) group_right () (herdkeeper_node_log_entry{{{_TABLESPACE}}} "
                    "and on (namespace, name, tablespace, pod) (herdkeeper_node_log_ledger == on (namespace, name, tablespace) "
                    "group_left () max by (namespace, name, tablespace) (herdkeeper_node_log_ledger)))"
                ),
                Look(limits=red_from(100_000)),
            ),
        ),
        row(
            "Statements",
            Panel(
                "Log entries",
                "Applied a second, by node. A transaction has several.",
                _by_tablespace_and_pod(f"clamp_min(deriv(herdkeeper_node_log_entry{{{_TABLESPACE}}}[5m]), 0)"),
                _RATE,
            ),
            Panel(
                "Open transactions",
                "That began and did not end.",
                _by_tablespace_and_pod(f"herdkeeper_node_open_transactions{{{_TABLESPACE}}}"),
            ),
        ),
        row(
            "The log",
            Panel(
                "Needed log is released in",
                "By who needs it. Below zero it is kept past its retention and fills the bookies.",
                Query(
                    "min by (namespace, tablespace, needed_by) "
                    f"(herdkeeper_log_retention_ends_timestamp_seconds{{{_OF_TABLESPACE}}}) - time()",
                    "{{namespace}}/{{tablespace}} {{needed_by}}",
                ),
                Look("s", low=None, limits=red_below(0)),
                if_none=_none("Nobody needs a closed ledger of the log"),
            ),
            Panel(
                "What the archive lacks",
                "How old the newest archived moment is.",
                _age("herdkeeper_archive_current_timestamp_seconds", _OF_TABLESPACE, "tablespace"),
                _SECONDS,
                if_none=_none("No log is archived"),
            ),
        ),
        row(
            "Nodes",
            Panel(
                "Volume in use",
                "Of each SQL node. An alert begins at 85 %.",
                _by_pod(f"1 - herdkeeper_node_volume_free_bytes{{{_HERDDB}}} / herdkeeper_node_volume_bytes{{{_HERDDB}}}"),
                Look("percentunit", limits=red_from(0.85)),
            ),
            Panel("Heap", "In use, by node.", _by_pod(f'jvm_memory_bytes_used{{{_HERDDB}, area="heap"}}'), Look("bytes")),
            Panel(
                "Direct memory", "In use, by node: network buffers.", _by_pod(f"jvm_memory_direct_bytes_used{{{_HERDDB}}}"), Look("bytes")
            ),
        ),
    ),
)

DASHBOARDS = (STACK, BOOKKEEPER, SQL)
