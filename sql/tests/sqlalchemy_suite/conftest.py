"""Runs SQLAlchemy's own tests of a dialect on HerdDB; spark-jobs/tests/integration/test_sqlalchemy_suite.py starts it."""

from __future__ import annotations

import pytest
from sqlalchemy.dialects import registry

for name in ("herddb", "herddb.herdkeeper"):
    registry.register(name, "lenient", "LenientDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from lacking import why_left_out  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403 - the plugin's hooks; it must be told of the dialect before


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what no requirement stands for, with its reason."""
    for item in items:
        test = f"{item.parent.name.partition('_herddb')[0]}::{item.originalname}"
        if why := why_left_out(test):
            item.add_marker(pytest.mark.skip(reason=f"HerdDB lacks {why}"))
