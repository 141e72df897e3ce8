"""A checkpoint by Spark holds exactly the rows that SQL has at its LSN."""

from __future__ import annotations

from conftest import TABLES, Stack
from runs import compared, rows_in_files, rows_of_tables, status_of, the_same

from herdkeeper_e2e import built_images
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.tools_pod import ToolsPod


def test_each_row_is_in_the_checkpoint_once_and_its_digest_is_the_follower_s_at_that_lsn(stack: Stack) -> None:
    kubectl = stack.kubectl
    kubectl.apply(REPOSITORY / "examples/checkpoint.yaml")
    status = status_of(kubectl, "checkpoint", "flights-1")

    # the job compares each table's order-free digest with a follower that is held at the same LSN, and fails where they differ
    assert kubectl.existing("checkpoint", "flights-1")["spec"]["verify"] == "Follower"
    assert status["verified"].startswith("compared with follower")
    assert status["openTransactions"] == 0

    in_files = rows_in_files(TABLES.split(","))
    pod = ToolsPod(kubectl, "checkpoint-reader", stack.tools.database, image=built_images.SPARK, claim="checkpoints")
    with pod.for_a_while() as reader:
        assert compared(reader, in_files) == the_same(in_files)
    assert rows_of_tables(status).items() >= in_files.items()
