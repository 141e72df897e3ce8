"""The three dashboards: the whole stack, BookKeeper, and SQL with its log. The chart has them as JSON (`make generate`)."""

from __future__ import annotations

from herdkeeper_e2e.monitoring.dashboard import Dashboard, Panel, Query, Variable, row

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
                Query(
                    f"count(max by (kind, namespace, name) (herdkeeper_resource_ready{{{_RESOURCE}, {_LASTING}}}) == 0) or vector(0)",
                    "not Ready",
                ),
                kind="stat",
            ),
            Panel(
                "Conditions that are False",
                "What is wrong, by resource, with its reason. `kubectl describe` has the sentence.",
                Query(
                    "max by (kind, namespace, name, type, reason) "
                    f'(herdkeeper_resource_condition{{{_RESOURCE}, type!="Progressing", {_LASTING}}}) == 0',
                    "{{kind}} {{name}}",
                ),
                kind="table",
            ),
            Panel(
                "Servers that are scraped",
                "1 for each server whose metrics could be read, 0 for one that is down or out of reach.",
                Query('up{component!="", ' + f'kind=~"ZooKeeperCluster|BookKeeperCluster|HerdDBCluster", {_RESOURCE}}}', "{{pod}}"),
            ),
        ),
        row(
            "Recovery",
            Panel(
                "Age of the newest verified Checkpoint",
                "By ScheduledCheckpoint. It grows to one period of the schedule and falls back.",
                Query(
                    f"time() - max by (namespace, schedule) (herdkeeper_checkpoint_last_verified_timestamp_seconds{{{_RESOURCE}}})",
                    "{{schedule}}",
                ),
                "s",
            ),
            Panel(
                "Recovery window",
                "How far back moments can be restored from the archive.",
                Query(
                    f"time() - max by (namespace, tablespace) (herdkeeper_recovery_window_begins_timestamp_seconds{{{_RESOURCE}}})",
                    "{{tablespace}}",
                ),
                "s",
            ),
            Panel(
                "What the archive lacks",
                "How old the newest archived moment is: what a loss of all bookies would cost.",
                Query(
                    f"time() - max by (namespace, tablespace) (herdkeeper_archive_current_timestamp_seconds{{{_RESOURCE}}})",
                    "{{tablespace}}",
                ),
                "s",
            ),
            Panel(
                "Certificates expire in",
                "Of the SQL port. An alert begins 14 days before.",
                Query(
                    f"min by (namespace, herddb) (herdkeeper_certificate_expires_timestamp_seconds{{{_RESOURCE}}}) - time()", "{{herddb}}"
                ),
                "s",
                "stat",
            ),
        ),
        row(
            "Proof",
            Panel(
                "Findings of the newest audits",
                "Critical: fewer good copies than were acknowledged.",
                Query(
                    f'max by (bookkeeper, depth, severity) (herdkeeper_audit_findings{{{_RESOURCE}, severity!="Pending"}})',
                    "{{bookkeeper}} {{depth}} {{severity}}",
                ),
            ),
            Panel(
                "Age of the last complete audit",
                "By depth. An alert begins after two weeks without a deep one.",
                Query(
                    f"time() - max by (bookkeeper, depth) (herdkeeper_audit_last_complete_timestamp_seconds{{{_RESOURCE}}})",
                    "{{bookkeeper}} {{depth}}",
                ),
                "s",
            ),
            Panel(
                "Restore drills",
                "How long the newest successful one took, by schedule.",
                Query(f"max by (namespace, schedule) (herdkeeper_restore_drill_seconds{{{_RESOURCE}}})", "{{schedule}}"),
                "s",
            ),
        ),
        row(
            "ZooKeeper",
            Panel(
                "Request latency",
                "Average of each member in milliseconds. Its disk decides.",
                Query(f"avg_latency{{{_ZOOKEEPER}}}", "{{pod}}"),
            ),
            Panel(
                "Requests that wait",
                "By member. A number that stays above zero means that the ensemble is too slow.",
                Query(f"outstanding_requests{{{_ZOOKEEPER}}}", "{{pod}}"),
            ),
            Panel("Znodes", "By member; ledgers, mostly.", Query(f"znode_count{{{_ZOOKEEPER}}}", "{{pod}}")),
            Panel("Leader", "For how long the member that leads has led.", Query(f"leader_uptime{{{_ZOOKEEPER}}} / 1000", "{{pod}}"), "s"),
        ),
        row(
            "The operator",
            Panel(
                "Looks at resources",
                "By outcome. Failed ones should be none.",
                Query("sum by (outcome) (rate(herdkeeper_reconcile_total[5m]))", "{{outcome}}"),
                "ops",
            ),
            Panel(
                "Duration of looks",
                "99 of 100 are shorter.",
                Query("histogram_quantile(0.99, sum by (le, kind) (rate(herdkeeper_reconcile_seconds_bucket[5m])))", "{{kind}}"),
                "s",
            ),
            Panel(
                "Writes",
                "To Kubernetes, ZooKeeper and SQL nodes. A settled system gets none.",
                Query("sum by (verb) (rate(herdkeeper_writes_total[5m]))", "{{verb}}"),
                "ops",
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
                "Read-only (full, failed or drained), or not registered. Should be 0 but for drains.",
                Query(f"count(bookie_SERVER_STATUS{{{_BOOKKEEPER}}} < 1) or vector(0)", "not writable"),
                kind="stat",
            ),
            Panel(
                "State of each bookie",
                "1 writable, 0 read-only, -1 not registered.",
                Query(f"bookie_SERVER_STATUS{{{_BOOKKEEPER}}}", "{{pod}}"),
            ),
            Panel(
                "Ledgers that lack a copy",
                "As BookKeeper's auditor marked them, counted up to 1000.",
                Query(f"max by (bookkeeper) (herdkeeper_under_replicated_ledgers{{{_OF_BOOKKEEPER}}})", "{{bookkeeper}}"),
            ),
            Panel(
                "For how long",
                "Since the oldest of these marks. An alert begins after an hour.",
                Query(
                    f"time() - max by (bookkeeper) (herdkeeper_under_replicated_since_timestamp_seconds{{{_OF_BOOKKEEPER}}})",
                    "{{bookkeeper}}",
                ),
                "s",
            ),
        ),
        row(
            "Disks",
            Panel(
                "Ledger volumes in use",
                "At 95 % a bookie turns read-only.",
                Query(f'{{__name__=~"bookie_ledger_dir_.*_usage", {_BOOKKEEPER}}}', "{{pod}}"),
                "percent",
            ),
            Panel(
                "Writable ledger directories",
                "By bookie. 0 means read-only.",
                Query(f"bookie_ledger_writable_dirs{{{_BOOKKEEPER}}}", "{{pod}}"),
            ),
            Panel(
                "Written",
                "Bytes of entries a second, by bookie.",
                Query(f"rate(bookie_WRITE_BYTES{{{_BOOKKEEPER}}}[5m])", "{{pod}}"),
                "Bps",
            ),
        ),
        row(
            "Entries",
            Panel(
                "Added",
                "Requests a second, by bookie.",
                Query(f'rate(bookkeeper_server_ADD_ENTRY_REQUEST_count{{{_BOOKKEEPER}, success="true"}}[5m])', "{{pod}}"),
                "ops",
            ),
            Panel(
                "Latency of adds",
                "99 of 100 are faster, in milliseconds. SQL commits wait for it.",
                Query(f'bookkeeper_server_ADD_ENTRY_REQUEST{{{_BOOKKEEPER}, success="true", quantile="0.99"}}', "{{pod}}"),
            ),
            Panel(
                "Read",
                "Requests a second, by bookie.",
                Query(f'rate(bookkeeper_server_READ_ENTRY_REQUEST_count{{{_BOOKKEEPER}, success="true"}}[5m])', "{{pod}}"),
                "ops",
            ),
            Panel(
                "Failed",
                "Adds and reads a second that a bookie answered with an error. Reads of an entry that is not there are among them.",
                Query(f'rate(bookkeeper_server_ADD_ENTRY_REQUEST_count{{{_BOOKKEEPER}, success="false"}}[5m])', "add {{pod}}"),
                "ops",
                more=(Query(f'rate(bookkeeper_server_READ_ENTRY_REQUEST_count{{{_BOOKKEEPER}, success="false"}}[5m])', "read {{pod}}"),),
            ),
        ),
        row(
            "Inside",
            Panel(
                "Latency of journal syncs",
                "99 of 100 are faster, in milliseconds: the disk's own speed.",
                Query(f'bookie_journal_JOURNAL_SYNC{{{_BOOKKEEPER}, success="true", quantile="0.99"}}', "{{pod}}"),
            ),
            Panel(
                "Bytes read",
                "A second, by bookie: by SQL nodes that boot, jobs and other clients.",
                Query(f"rate(bookie_READ_BYTES{{{_BOOKKEEPER}}}[5m])", "{{pod}}"),
                "Bps",
            ),
            Panel(
                "Journal queue",
                "Entries that wait for the journal.",
                Query(f"bookie_journal_JOURNAL_QUEUE_SIZE{{{_BOOKKEEPER}}}", "{{pod}}"),
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
                "1 for the node that leads the tablespace, 0 for those that follow.",
                Query(f"herdkeeper_node_leads{{{_TABLESPACE}}}", "{{tablespace}} {{pod}}"),
            ),
            Panel(
                "Entries behind the leader",
                "Of followers in the leader's ledger; one in an older ledger is not shown.",
                Query(
                    f"max by (namespace, name, tablespace) (herdkeeper_node_log_entry{{{_TABLESPACE}}} "
                    "and herdkeeper_node_leads == 1)"
                    f" - on (namespace, name, tablespace) group_right () (herdkeeper_node_log_entry{{{_TABLESPACE}}} "
                    "and on (namespace, name, tablespace, pod) (herdkeeper_node_log_ledger == on (namespace, name, tablespace) "
                    "group_left () max by (namespace, name, tablespace) (herdkeeper_node_log_ledger)))",
                    "{{tablespace}} {{pod}}",
                ),
            ),
            Panel(
                "Log entries",
                "Applied a second, by node. A transaction has several.",
                Query(f"clamp_min(deriv(herdkeeper_node_log_entry{{{_TABLESPACE}}}[5m]), 0)", "{{tablespace}} {{pod}}"),
                "ops",
            ),
            Panel(
                "Open transactions",
                "That began and did not end.",
                Query(f"herdkeeper_node_open_transactions{{{_TABLESPACE}}}", "{{tablespace}} {{pod}}"),
            ),
        ),
        row(
            "The log",
            Panel(
                "Needed log is released in",
                "By who needs it. Below zero it is kept past its retention and fills the bookies.",
                Query(
                    f"min by (tablespace, needed_by) (herdkeeper_log_retention_ends_timestamp_seconds{{{_OF_TABLESPACE}}}) - time()",
                    "{{tablespace}} {{needed_by}}",
                ),
                "s",
            ),
            Panel(
                "What the archive lacks",
                "How old the newest archived moment is.",
                Query(f"time() - max by (tablespace) (herdkeeper_archive_current_timestamp_seconds{{{_OF_TABLESPACE}}})", "{{tablespace}}"),
                "s",
            ),
        ),
        row(
            "Nodes",
            Panel(
                "Volume in use",
                "Of each SQL node. An alert begins at 85 %.",
                Query(f"1 - herdkeeper_node_volume_free_bytes{{{_HERDDB}}} / herdkeeper_node_volume_bytes{{{_HERDDB}}}", "{{pod}}"),
                "percentunit",
            ),
            Panel("Heap", "In use, by node.", Query(f'jvm_memory_bytes_used{{{_HERDDB}, area="heap"}}', "{{pod}}"), "bytes"),
            Panel(
                "Direct memory",
                "In use, by node: network buffers.",
                Query(f"jvm_memory_direct_bytes_used{{{_HERDDB}}}", "{{pod}}"),
                "bytes",
            ),
        ),
    ),
)

DASHBOARDS = (STACK, BOOKKEEPER, SQL)
