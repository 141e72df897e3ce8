"""What pauses a resource."""

from __future__ import annotations

import pytest
from situations import quickstart, with_metadata

from herdkeeper.shared.names import PAUSED_ANNOTATION, PLAN_ANNOTATION
from herdkeeper.shared.paused import paused_by


@pytest.mark.parametrize("annotation", [PAUSED_ANNOTATION, PLAN_ANNOTATION])
@pytest.mark.parametrize(("value", "stops"), [("true", True), ("True", True), ("yes", True), ("", True), ("false", False)])
def test_any_value_but_false_pauses_so_that_a_mistyped_one_lets_no_change_through(annotation: str, value: str, stops: bool) -> None:
    cluster = with_metadata(quickstart("ZooKeeperCluster"), annotations={annotation: value})
    assert (paused_by(cluster.metadata.annotations) == annotation) is stops


def test_a_resource_without_such_an_annotation_is_not_paused() -> None:
    assert paused_by(quickstart("ZooKeeperCluster").metadata.annotations) is None
