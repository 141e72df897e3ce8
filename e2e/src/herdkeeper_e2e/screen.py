"""The demo's last screen: what runs, where to connect, what was checkpointed and audited, how to go on. Pure, but for printing."""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from herdkeeper.plugin.screen import Screen
from herdkeeper.plugin.stack_tree import label, stacks
from herdkeeper.plugin.tree_text import tree_text
from herdkeeper_e2e.kubectl import Object


@dataclass(frozen=True)
class Shown:
    """Everything that the screen tells. `rows` are COUNT(*) per table by SQL; resources as `kubectl get -o json` gives them."""

    namespace: str
    resources: Sequence[Object]
    pods: Sequence[Object]
    checkpoint: Object
    audit: Object
    rows: Mapping[str, int]

    def resource(self, kind: str) -> Object:
        return next(item for item in self.resources if item["kind"] == kind)


def screen(shown: Shown) -> RenderableType:
    return Group(_tree(shown), _connect(shown), _rows(shown), _audit(shown), _next_steps(shown))


def mebibytes(count: int) -> str:
    return f"{count / 1024**2:,.1f} MiB"


def _mark(reason: str | None) -> str:
    return "[green]✔[/]" if reason is None else "[red]✘[/]"


def _tree(shown: Shown) -> Text:
    """As `kubectl herdkeeper status` shows it."""
    text = tree_text(
        f"namespace {shown.namespace}",
        stacks(shown.resources, shown.pods, datetime.datetime.now(datetime.UTC)),
        Screen(io.StringIO(), colours=True),
    )
    return Text.from_ansi(text)


def _connect(shown: Shown) -> Panel:
    status = shown.resource("HerdDBCluster")["status"]
    tablespace = shown.resource("Tablespace")["status"]["tablespaceName"]
    lines = [
        f"inside the cluster  {status['sqlAddress']}, tablespace {tablespace}",
        f"JDBC                {status['jdbcUrl']}",
        f"user and password   Secret {status['credentialsSecret']} (keys username, password)",
    ]
    return Panel(Text("\n".join(lines)), title="SQL", title_align="left")


def _rows(shown: Shown) -> Panel:
    status = shown.checkpoint["status"]
    inside = {table["name"]: table["rows"] for table in status.get("tables", [])}
    table = Table(box=None, pad_edge=False)
    table.add_column("table")
    for heading in ("rows in SQL", "rows in the checkpoint"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for name in sorted({*shown.rows, *inside}):
        same = shown.rows.get(name) == inside.get(name)
        table.add_row(name, *(_count(rows.get(name)) for rows in (shown.rows, inside)), _mark(None if same else "differs"))
    lsn = status.get("lsn", {})
    facts = (
        f"LSN ledger {lsn.get('ledgerId')}, entry {lsn.get('entryId')}; {mebibytes(status.get('bytes', 0))} of Parquet in "
        f"{status.get('durationSeconds', 0):.0f} s; {status.get('message', '')}"
    )
    return Panel(Group(table, Text(facts)), title=label(shown.checkpoint), title_align="left")


def _count(rows: int | None) -> str:
    return "none" if rows is None else f"{rows:,}"


def _audit(shown: Shown) -> Panel:
    status = shown.audit["status"]
    lines = [
        f"{status.get('ledgers', 0):,} ledgers, {status.get('entries', 0):,} entries, {status.get('replicas', 0):,} replicas read and "
        f"verified ({mebibytes(status.get('bytes', 0))}) in {status.get('durationSeconds', 0):.0f} s",
        f"findings: {status.get('findingsTotal', 0)}",
    ]
    for finding in status.get("findings", []):
        where = f"ledger {finding.get('ledgerId', '-')} entries {finding.get('firstEntry', '-')}..{finding.get('lastEntry', '-')}"
        lines.append(f"  {finding['severity']} {finding['kind']}: {where} on {finding.get('bookieId', '-')}")
    return Panel(Text("\n".join(lines)), title=label(shown.audit), title_align="left")


def _next_steps(shown: Shown) -> Panel:
    query = "SELECT carrier, COUNT(*) AS flights FROM flights GROUP BY carrier ORDER BY flights DESC LIMIT 5"
    lines = [
        'eval "$(e2e/kind/cluster.sh env)"    puts kubectl, helm and this cluster into your shell',
        f"kubectl -n {shown.namespace} get herdkeeper",
        f"e2e/bootstrap/run.sh python -m herdkeeper.plugin.main status -n {shown.namespace}    this tree, as kubectl herdkeeper shows it",
        f'kubectl -n {shown.namespace} exec -i tools -- python3 -m herdkeeper_e2e.query "{query}"',
        f"kubectl -n {shown.namespace} get checkpoint,replicationaudit -o yaml",
        "make demo-clean    removes the cluster and all of it",
    ]
    return Panel(Text("\n".join(lines)), title="how to go on", title_align="left")
