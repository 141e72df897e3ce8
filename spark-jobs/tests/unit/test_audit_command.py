"""`herdkeeper-audit`: arguments, Spark's configuration, exit codes, the tables, and its tasks on a real Spark."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pyarrow as pa
import pytest
from played_bookie import PlayedBookie, ledger, packed, served
from pyspark.sql import SparkSession

from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper_jobs import spark_session
from herdkeeper_jobs.audit import arguments, cli
from herdkeeper_jobs.audit.on_spark import run_on_spark
from herdkeeper_jobs.audit.schema import holdings_from_table, holdings_to_batch
from herdkeeper_jobs.bookkeeper.metadata import MetadataUnavailableError
from herdkeeper_jobs.copies.holding import CopyState, Holding
from herdkeeper_jobs.copies.plan import AuditBudget, AuditedLedger, holding_checks, plan_tasks
from herdkeeper_jobs.spark_session import (
    SparkConfigurationError,
    SparkSettings,
    add_spark_arguments,
    spark_configuration,
    spark_settings,
)
from herdkeeper_jobs.termination_message import VARIABLE, write_termination_message

NAMES = ("b0", "b1", "b2")
POD = {"POD_IP": "10.0.0.9", "POD_NAME": "audit-x7k2p", "POD_NAMESPACE": "shop"}


def test_tasks_run_on_spark_and_every_copy_comes_back(spark: SparkSession) -> None:
    entries = {(1, entry_id): packed(1, entry_id) for entry_id in range(200)}
    bookies = [PlayedBookie(dict(entries), most_in_batch=500) for _ in NAMES]
    del bookies[1].entries[1, 50]
    with served(*bookies) as addresses:
        tasks = plan_tasks(holding_checks(AuditedLedger(ledger(1, 199, NAMES), 199)), addresses, AuditBudget(2))
        holdings = list(holdings_from_table(run_on_spark(spark, tasks)))
    assert sum(holding.copies for holding in holdings) == 600
    assert [(holding.bookie_id, holding.first, holding.last) for holding in holdings if holding.state is CopyState.MISSING] == [
        ("b1", 50, 50)
    ]


@pytest.mark.parametrize(("looks", "calls"), [(0, []), (3, ["start", "run", "run", "run", "stop"])], ids=["nothing to read", "three looks"])
def test_spark_is_started_by_the_first_tasks_and_once(looks: int, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Session:
        def stop(self) -> None:
            seen.append("stop")

    def start(*_: object) -> Session:
        seen.append("start")
        return Session()

    monkeypatch.setattr(spark_session, "start_spark", start)
    monkeypatch.setattr(cli, "run_on_spark", lambda *_: seen.append("run"))
    with cli._tasks_on_spark(SparkSettings()) as run_tasks:
        for _ in range(looks):
            run_tasks([])
    assert seen == calls


def test_holdings_survive_the_table() -> None:
    holdings = [Holding(1, 0, "b", 2, state, 3, 9, 7, 100, "why") for state in CopyState]
    table = pa.Table.from_batches([holdings_to_batch(holdings)])
    assert list(holdings_from_table(table)) == holdings


@pytest.mark.parametrize(
    ("text", "ranges"),
    [("", ()), ("7", (EntryRange(7, 7),)), ("1, 2,5-9", (EntryRange(1, 1), EntryRange(2, 2), EntryRange(5, 9)))],
)
def test_ledgers_are_given_as_ids_and_ranges(text: str, ranges: tuple[EntryRange, ...]) -> None:
    assert arguments.parse_ledgers(text) == ranges


@pytest.mark.parametrize("text", ["9-5", "x", "1;2", "-3"])
def test_invalid_ledgers_are_refused_with_the_wrong_part(text: str) -> None:
    with pytest.raises(arguments.ArgumentError, match=r"--ledgers: .* write ids and ascending ranges"):
        arguments.parse_ledgers(text)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--run-id", "a/b"], "--run-id: 'a/b' is not a file name"),
        (["--ledgers-root", "ledgers"], "--ledgers-root: 'ledgers' is not an absolute path"),
        (["--bytes-per-second-per-bookie", "0"], "--bytes-per-second-per-bookie: 0.0 is not above 0"),
        (["--master", "yarn"], "--master is 'yarn': give local[N]"),
        (["--racks", "b0=a,b1"], "--racks: 'b1' names no bookie and rack"),
        (["--min-racks", "0"], "--min-racks: 0 is below 1; give 1 or more"),
    ],
)
def test_a_refused_argument_ends_with_2_and_a_summary_that_names_it(
    extra: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "message"))
    code = cli.main(["--zookeeper", "127.0.0.1:1", "--ledgers-root", "/a/ledgers", "--run-id", "r", *extra])
    summary = AuditSummary.from_json((tmp_path / "message").read_text())
    assert (code, summary.outcome) == (2, JobOutcome.CONFIGURATION_REFUSED)
    assert message in summary.message


def test_an_unavailable_zookeeper_ends_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise MetadataUnavailableError("ZooKeeper at z:1 did not answer in 30 s")

    monkeypatch.setenv(VARIABLE, str(tmp_path / "message"))
    monkeypatch.setattr(cli, "open_catalog", away)
    assert cli.main(["--zookeeper", "z:1", "--ledgers-root", "/a/ledgers", "--run-id", "r"]) == 3
    assert json.loads((tmp_path / "message").read_text())["outcome"] == "Retryable"


def test_a_summary_that_cannot_be_written_does_not_fail_the_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/at/all")
    write_termination_message("{}")
    captured = capsys.readouterr()
    assert captured.out == "{}\n"
    assert "cannot write /nowhere/at/all" in captured.err


def test_local_spark_talks_to_itself_only() -> None:
    configuration = spark_configuration(SparkSettings(master="local[4]"), {})
    assert configuration["spark.driver.bindAddress"] == "127.0.0.1"
    assert not any(key.startswith("spark.kubernetes") for key in configuration)


def test_executors_as_pods_belong_to_the_drivers_pod_and_find_it_by_its_address() -> None:
    settings = SparkSettings(master="k8s://https://kubernetes.default.svc", executors=3, executor_image="spark:1")
    configuration = spark_configuration(settings, {**POD, "SERVICE_ACCOUNT": "orders-audit"})
    assert configuration["spark.kubernetes.driver.pod.name"] == "audit-x7k2p"
    assert configuration["spark.driver.host"] == configuration["spark.driver.bindAddress"] == "10.0.0.9"
    assert configuration["spark.kubernetes.namespace"] == "shop"
    assert configuration["spark.kubernetes.authenticate.serviceAccountName"] == "orders-audit"
    assert configuration["spark.executor.instances"] == "3"
    assert configuration["spark.speculation"] == "false"


@pytest.mark.parametrize("missing", sorted(POD))
def test_a_variable_that_executors_need_is_asked_for_by_name(missing: str) -> None:
    settings = SparkSettings(master="k8s://https://k", executor_image="spark:1")
    with pytest.raises(SparkConfigurationError, match=f"the variable {missing} is not set"):
        spark_configuration(settings, {name: value for name, value in POD.items() if name != missing})


def test_executors_without_an_image_are_refused() -> None:
    with pytest.raises(SparkConfigurationError, match="--executor-image is empty"):
        spark_configuration(SparkSettings(master="k8s://https://k"), POD)


def test_cores_count_the_tasks_that_run_at_once() -> None:
    assert SparkSettings(master="local[3]").cores == 3
    assert SparkSettings(master="k8s://https://k", executors=2, executor_cores=2).cores == 4


def test_arguments_become_settings() -> None:
    parser = argparse.ArgumentParser()
    add_spark_arguments(parser)
    parsed = parser.parse_args(["--master", "k8s://https://k", "--executors", "5", "--executor-image", "i"])
    assert spark_settings(parsed) == SparkSettings(master="k8s://https://k", executors=5, executor_image="i")
    with pytest.raises(SparkConfigurationError, match="--executors and --executor-cores"):
        spark_settings(parser.parse_args(["--master", "k8s://https://k", "--executors", "0"]))


@pytest.mark.parametrize(("given", "expected"), [("512m", "512m"), ("512Mi", "512m"), ("1Gi", "1g")])
def test_memory_may_be_written_as_java_or_as_kubernetes_writes_it(given: str, expected: str) -> None:
    assert spark_configuration(SparkSettings(driver_memory=given), {})["spark.driver.memory"] == expected


def test_memory_in_any_other_form_is_refused() -> None:
    with pytest.raises(SparkConfigurationError, match=r"--driver-memory is '0\.5Gi'"):
        spark_configuration(SparkSettings(driver_memory="0.5Gi"), {})
