"""Settings come from the environment; what they must not be is named."""

from __future__ import annotations

import pytest

from herdkeeper.settings import Settings, SettingsError


def test_without_variables_all_namespaces_are_watched():
    assert Settings.from_environment({}) == Settings()


def test_the_chart_s_variables_are_read():
    settings = Settings.from_environment(
        {
            "HERDKEEPER_WATCH_NAMESPACES": "a, b",
            "HERDKEEPER_SPARK_IMAGE": "spark:1",
            "HERDKEEPER_RESYNC_SECONDS": "5",
            "HERDKEEPER_LOG_LEVEL": "debug",
            "HERDKEEPER_POD_NAMESPACE": "home",
            "HERDKEEPER_POD_NAME": "herdkeeper-0",
        }
    )
    assert (settings.watch_namespaces, settings.spark_image, settings.resync_seconds) == (("a", "b"), "spark:1", 5.0)
    assert (settings.log_level, settings.namespace, settings.identity) == ("debug", "home", "herdkeeper-0")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HERDKEEPER_RESYNC_SECONDS", "often"),
        ("HERDKEEPER_RESYNC_SECONDS", "0"),
        ("HERDKEEPER_LOG_LEVEL", "loud"),
        ("HERDKEEPER_HTTP_PORT", "-1"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(name, value):
    with pytest.raises(SettingsError, match=f"{name} is '{value}'"):
        Settings.from_environment({name: value})
