"""Spark's configuration for the place of a job's tasks."""

from __future__ import annotations

import pytest

from herdkeeper_jobs.spark_session import CLASS_ARCHIVE, SparkConfigurationError, SparkSettings, class_archive, spark_configuration

POD = {"POD_IP": "10.0.0.7", "POD_NAME": "flights-1-checkpoint-abcde", "POD_NAMESPACE": "demo", "SERVICE_ACCOUNT": "flights-1-checkpoint"}
VOLUME = "spark.kubernetes.executor.volumes.persistentVolumeClaim.destination"


def test_without_executors_nothing_outside_of_the_driver_s_pod_is_needed():
    configuration = spark_configuration(SparkSettings(master="local[4]"), {})
    assert configuration["spark.driver.host"] == "127.0.0.1"
    assert not [key for key in configuration if key.startswith("spark.kubernetes")]


@pytest.mark.parametrize(
    ("settings", "cores"),
    [
        (SparkSettings(master="local[4]"), "4"),
        (SparkSettings(master="k8s://https://api", executor_image="spark:1", executors=4, executor_cores=3), "12"),
    ],
)
def test_work_is_shared_out_for_all_cores_though_executors_come_late(settings, cores):
    assert spark_configuration(settings, POD)["spark.default.parallelism"] == cores


def test_executors_mount_the_destination_where_the_driver_has_it():
    settings = SparkSettings(master="k8s://https://api", executor_image="spark:1", executor_volume="checkpoints:/checkpoints")
    configuration = spark_configuration(settings, POD)
    assert configuration[f"{VOLUME}.options.claimName"] == "checkpoints"
    assert configuration[f"{VOLUME}.mount.path"] == "/checkpoints"
    assert configuration[f"{VOLUME}.mount.readOnly"] == "false"


def test_executors_belong_to_the_driver_s_pod_and_call_its_address():
    configuration = spark_configuration(SparkSettings(master="k8s://https://api", executor_image="spark:1"), POD)
    assert configuration["spark.kubernetes.driver.pod.name"] == POD["POD_NAME"]
    assert configuration["spark.driver.host"] == POD["POD_IP"]
    assert configuration["spark.kubernetes.authenticate.serviceAccountName"] == POD["SERVICE_ACCOUNT"]


def test_nobody_speaks_with_a_driver_or_an_executor_without_the_secret_of_the_job():
    configuration = spark_configuration(SparkSettings(master="k8s://https://api", executor_image="spark:1"), POD)
    assert configuration["spark.authenticate"] == "true"
    assert configuration["spark.network.crypto.enabled"] == "true"
    assert not [key for key in configuration if key.startswith("spark.authenticate.secret")], "Spark makes another one for each job"


def test_a_driver_asks_for_neither_claims_nor_services_which_it_has_no_right_to():
    configuration = spark_configuration(SparkSettings(master="k8s://https://api", executor_image="spark:1"), POD)
    asks = ("ownPersistentVolumeClaim", "reusePersistentVolumeClaim", "service.deleteOnTermination")
    assert [configuration[f"spark.kubernetes.driver.{key}"] for key in asks] == ["false"] * 3


@pytest.mark.parametrize(
    ("settings", "environment", "named"),
    [
        (SparkSettings(master="k8s://https://api"), POD, "--executor-image"),
        (SparkSettings(master="k8s://https://api", executor_image="spark:1"), {}, "POD_IP"),
        (SparkSettings(master="k8s://https://api", executor_image="spark:1", executor_volume="checkpoints"), POD, "--executor-volume"),
        (
            SparkSettings(master="k8s://https://api", executor_image="spark:1", executor_pod="restricted"),
            POD,
            "--executor-pod is 'restricted'",
        ),
        (SparkSettings(master="k8s://https://api", executor_image="spark:1", executor_pod='{"kind": "Job"}'), POD, "kind 'Job'"),
        (SparkSettings(driver_memory="2 GB"), {}, "--driver-memory"),
    ],
)
def test_what_is_missing_is_named(settings, environment, named):
    with pytest.raises(SparkConfigurationError, match=named):
        spark_configuration(settings, environment)


def test_java_takes_an_archive_of_its_classes_where_there_is_one(tmp_path):
    file = tmp_path / "spark.jsa"
    file.touch()
    configuration = class_archive({CLASS_ARCHIVE: str(file)})
    assert f"-XX:SharedArchiveFile={file}" in configuration["spark.driver.extraJavaOptions"]
    jars = configuration["spark.driver.extraClassPath"].split(":")
    assert jars == sorted(jars), "in whatever order a file system lists them, the archive is of another class path"
    assert any("/spark-core_" in jar for jar in jars)


@pytest.mark.parametrize("environment", [{}, {CLASS_ARCHIVE: ""}, {CLASS_ARCHIVE: "/gone.jsa"}])
def test_without_an_archive_java_starts_as_ever(environment):
    assert class_archive(environment) == {}


def test_an_archive_changes_none_of_the_other_options(tmp_path):
    file = tmp_path / "spark.jsa"
    file.touch()
    options = class_archive({CLASS_ARCHIVE: str(file)})["spark.driver.extraJavaOptions"]
    assert options.startswith(spark_configuration(SparkSettings(), {})["spark.driver.extraJavaOptions"])
