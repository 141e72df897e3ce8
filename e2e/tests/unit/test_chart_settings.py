"""The table of the chart's settings: one row a setting, with what stands above it in values.yaml."""

from __future__ import annotations

import pytest
import yaml

from herdkeeper_e2e.release.chart_files import CHART, MONITORING
from herdkeeper_e2e.release.chart_settings import BEGIN, END, Setting, UndescribedSettingError, settings, spec_of, with_table

VALUES = """\
# Where images come from.
images:
  # What stands before
  # the name.
  registry: ""

# CPU | memory.
resources:
  requests: {cpu: 50m}
"""


def test_a_setting_has_its_path_its_default_and_its_comment():
    assert settings(VALUES) == (
        Setting("images.registry", '""', "What stands before the name."),
        Setting("resources", '{"requests": {"cpu": "50m"}}', "CPU | memory."),
    )


def test_a_setting_without_a_comment_is_refused_by_name():
    with pytest.raises(UndescribedSettingError, match=r"images\.tag has no comment"):
        settings(VALUES.replace('registry: ""\n', 'registry: ""\n  tag: ""\n'))


def test_the_table_stands_between_the_marks_and_the_rest_of_the_page_stays():
    page = with_table(f"# before\n{BEGIN}\nold\n{END}\nafter\n", VALUES)
    assert page.startswith(f"# before\n{BEGIN}\n| Setting")
    assert page.endswith(f'| `resources` | `{{"requests": {{"cpu": "50m"}}}}` | CPU \\| memory. |\n{END}\nafter\n')
    assert "old" not in page
    assert with_table(page, VALUES) == page


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="lacks a mark"):
        with_table("# before\n", VALUES)


def test_the_charts_own_settings_are_all_described():
    assert "images.registry" in {setting.path for setting in settings((CHART / "values.yaml").read_text())}


@pytest.mark.parametrize("kind", ["PrometheusRule", "PodMonitor"])
def test_the_charts_alerts_and_its_podmonitor_are_those_of_the_example(kind: str):
    (found,) = [part for part in yaml.safe_load_all(MONITORING.read_text()) if part["kind"] == kind]
    assert yaml.safe_load(spec_of(kind, MONITORING.read_text())) == found["spec"]
