"""While a writer goes on, the log is archived in a pod of its own; the pod is killed and the leader moves meanwhile. Nothing of the log is
missing in the archive, and a tablespace is made anew as it was at a moment of the window. (Its checkpoint is made of the log, which is
there as well; what is made of the archive is shown by scenarios 9, 10 and 11.)"""

from __future__ import annotations

from datetime import UTC, datetime

import yaml
from conftest import Stack, say
from own_tablespace import rows_in, rows_of
from runs import claimed, of_ledgers, rows_of_tables, status_of

from herdkeeper_e2e import built_images
from herdkeeper_e2e.archives import archived_after
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tablespaces import VERIFIED, wait_until_ready
from herdkeeper_e2e.tools_pod import ToolsPod
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


def archived_while_pods_and_leaders_go(stack: Stack, table: str) -> tuple[list[int], datetime, Object]:
    """The archive's pod is killed under a writer, and the leader moves. What the table had then, at which moment, and the status of flights
    once the rows behind that are archived, too, which are in `<table>_later`."""
    writer = WriterProcess(stack.tools, table).acknowledges(ROWS)
    stack.kubectl.run("delete", "pods", "-l", "app.kubernetes.io/name=archive", "--grace-period=0", "--force", "--wait=false")
    stack.sql.switch_over(stack.sql.other())
    writer.acknowledges(ROWS)
    writer.stop()
    written, moment = rows_in(stack.tools, table), datetime.now(UTC)
    write_rows(stack.tools, f"{table}_later", ROWS)
    status = archived_after(stack.kubectl, "flights", datetime.now(UTC), say)["status"]
    say(f"{status['archive']}; {status.get('recoveryWindow')}")
    return written, moment, status


def test_the_log_is_archived_whole_while_pods_and_leaders_go_and_a_moment_of_it_is_made_anew(stack: Stack) -> None:
    kubectl = stack.kubectl
    declare_archive(stack)
    written, moment, status = archived_while_pods_and_leaders_go(stack, TABLE)
    window = status["recoveryWindow"]
    assert datetime.fromisoformat(window["from"]) < moment < datetime.fromisoformat(window["to"])
    assert status["archive"]["expiry"].startswith("nothing expires: "), "nothing is as old as the window"

    pod = ToolsPod(kubectl, "archive-reader", stack.tools.database, image=built_images.SPARK, claim=CLAIM)
    with pod.for_a_while() as reader:
        checked = of_ledgers(stack, "archived_log", reader)
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
    assert rows_of(kubectl, restored["metadata"]["name"], TABLE) == written
    assert f"{TABLE}_later" not in rows_of_tables(status)
    kubectl.run("delete", "tablespace", restored["metadata"]["name"])
