"""Settings come from the environment; what they must not be is named."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from herdkeeper.api.default_images import DefaultImages
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.process.main import configure_logging
from herdkeeper.settings import Settings, SettingsError


def test_without_variables_all_namespaces_are_watched():
    assert Settings.from_environment({}) == Settings()


def test_an_empty_variable_as_of_a_null_in_the_chart_s_values_is_as_none():
    names = ("WATCH_NAMESPACES", "SPARK_IMAGE", "DRIVER_ROLE", "POD_IDS", "RESYNC_SECONDS", "LOG_LEVEL", "POD_NAMESPACE", "POD_NAME")
    assert Settings.from_environment({f"HERDKEEPER_{name}": "" for name in names}) == Settings()


def test_the_chart_s_variables_are_read():
    settings = Settings.from_environment(
        {
            "HERDKEEPER_WATCH_NAMESPACES": "a, b",
            "HERDKEEPER_SPARK_IMAGE": "spark:1",
            "HERDKEEPER_DRIVER_ROLE": "home-keeper-driver",
            "HERDKEEPER_ZOOKEEPER_IMAGE": "zookeeper:2",
            "HERDKEEPER_BOOKKEEPER_IMAGE": "bookkeeper:3",
            "HERDKEEPER_HERDDB_IMAGE": "herddb:4",
            "HERDKEEPER_POD_IDS": "Assigned",
            "HERDKEEPER_RESYNC_SECONDS": "5",
            "HERDKEEPER_LOG_LEVEL": "debug",
            "HERDKEEPER_POD_NAMESPACE": "home",
            "HERDKEEPER_POD_NAME": "herdkeeper-0",
        }
    )
    assert (settings.watch_namespaces, settings.resync_seconds) == (("a", "b"), 5.0)
    assert (settings.driver_role, settings.pod_ids) == ("home-keeper-driver", "Assigned")
    assert settings.images == DefaultImages("zookeeper:2", "bookkeeper:3", "herddb:4", "spark:1")
    assert (settings.log_level, settings.namespace, settings.identity) == ("debug", "home", "herdkeeper-0")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HERDKEEPER_RESYNC_SECONDS", "often"),
        ("HERDKEEPER_RESYNC_SECONDS", "0"),
        ("HERDKEEPER_LOG_LEVEL", "loud"),
        ("HERDKEEPER_POD_IDS", "10001"),
        ("HERDKEEPER_HTTP_PORT", "-1"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(name, value):
    with pytest.raises(SettingsError, match=f"{name} is '{value}'"):
        Settings.from_environment({name: value})


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    structlog.reset_defaults()
    logging.basicConfig(level=level, handlers=handlers, force=True)


def test_the_log_of_a_failure_holds_no_password_that_was_at_hand(logging_as_before, capsys):
    configure_logging("info")
    try:
        credentials = UserCredentials("herdkeeper", "a-generated-password")
        manifest = {"data": {"password": credentials.password}}
        raise ValueError(f"{manifest['data'].keys()} of {credentials} can't be written")
    except ValueError:
        structlog.get_logger().exception("reconcile failed")
    written = capsys.readouterr().out
    assert "test_settings" in written, "the place of the failure is told"
    assert "a-generated-password" not in written
