"""While a writer goes on, the log is archived in a pod of its own; the pod is killed and the leader moves meanwhile. Nothing of the log is
missing in the archive, and a tablespace is made anew as it was at a moment of the window. (Its checkpoint is made of the log, which is
there as well; what is made of the archive is shown by scenarios 9, 10 and 11.)"""

from __future__ import annotations

from datetime import UTC, datetime

import yaml
from conftest import Stack, say
from own_tablespace import rows_in
from runs import claimed, of_ledgers, rows_of_tables, status_of

from herdkeeper_e2e import built_images
from herdkeeper_e2e.archives import archived_after
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.tablespaces import VERIFIED, wait_until_ready
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.writer_process import WriterProcess, write_rows

CLAIM = "archives"
TABLE = "archived"
ROWS = 200
ARCHIVE = {"destination": claimed(CLAIM), "everySeconds": 5, "retention": {"keepWithin": "30d"}}


def declare_archive(stack: Stack) -> None:
    claim = next(yaml.safe_load_all((REPOSITORY / "examples/archive.yaml").read_text()))
    claim["spec"] |= {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}  # what the test cluster has
    stack.kubectl.apply(claim)
    stack.kubectl.want("tablespace", "flights", log={"archive": ARCHIVE})


def rows_of(stack: Stack, name: str, table: str = TABLE) -> list[int]:
    """The ids of a writer's table in a tablespace, beside each of which is what the writer put there."""
    tools = ToolsPod(stack.kubectl, f"tools-{name}", Database.of(stack.kubectl, "db", "bk", name)).start()
    found = rows_in(tools, table)
    stack.kubectl.run("delete", "pod", tools.name)
    return found


def test_the_log_is_archived_whole_while_pods_and_leaders_go_and_a_moment_of_it_is_made_anew(stack: Stack) -> None:
    kubectl = stack.kubectl
    declare_archive(stack)
    writer = WriterProcess(stack.tools, TABLE).acknowledges(ROWS)
    kubectl.run("delete", "pods", "-l", "app.kubernetes.io/name=archive", "--grace-period=0", "--force", "--wait=false")
    stack.sql.switch_over(stack.sql.other())
    writer.acknowledges(ROWS)
    writer.stop()
    written = rows_of(stack, "flights")
    moment = datetime.now(UTC)

    write_rows(stack.tools, f"{TABLE}_later", ROWS)
    found = archived_after(kubectl, "flights", datetime.now(UTC), say)
    say(f"{found['status']['archive']}; {found['status']['recoveryWindow']}")
    window = found["status"]["recoveryWindow"]
    assert datetime.fromisoformat(window["from"]) < moment < datetime.fromisoformat(window["to"])
    assert found["status"]["archive"]["expiry"].startswith("nothing expires: "), "nothing is as old as the window"

    reader = ToolsPod(kubectl, "archive-reader", stack.tools.database, image=built_images.SPARK, claim=CLAIM).start()
    checked = of_ledgers(stack, "archived_log", reader)
    kubectl.run("delete", "pod", reader.name)
    say(f"{checked}")
    assert checked["wrong"] == []
    assert checked["first"][1] == 0, "nothing has expired"
    assert checked["to_the_end"], "the leader's move closed a ledger"

    documents = list(yaml.safe_load_all((REPOSITORY / "examples/restore-to-a-moment.yaml").read_text()))[1:]
    checkpoint, restored = documents
    checkpoint["spec"] |= {"target": {"timestamp": moment.isoformat()}, "destination": ARCHIVE["destination"]}
    kubectl.apply_all(documents)
    status = status_of(kubectl, "checkpoint", checkpoint["metadata"]["name"])
    restore = wait_until_ready(kubectl, restored["metadata"]["name"], say)["status"]["restore"]
    assert restore["verified"].endswith(VERIFIED), restore
    assert rows_of(stack, restored["metadata"]["name"]) == written
    assert f"{TABLE}_later" not in rows_of_tables(status)
    kubectl.run("delete", "tablespace", restored["metadata"]["name"])
