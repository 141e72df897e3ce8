"""Which image servers run: the resource's own, else the operator's for its kind."""

from __future__ import annotations

import pytest
import yaml
from situations import EXAMPLES, with_spec

from herdkeeper.api.default_images import SHIPPED_IMAGES, VERSION, DefaultImages, image_of
from herdkeeper_e2e.defaulting import stored

SET = DefaultImages("zookeeper:2", "bookkeeper:3", "herddb:4", "spark:5")
QUICKSTART = {document["kind"]: stored(document) for document in yaml.safe_load_all((EXAMPLES / "quickstart.yaml").read_text())}


@pytest.mark.parametrize(
    ("kind", "image"), [("ZooKeeperCluster", "zookeeper:2"), ("BookKeeperCluster", "bookkeeper:3"), ("HerdDBCluster", "herddb:4")]
)
def test_a_resource_that_names_none_runs_the_operators_image_and_one_that_does_its_own(kind, image):
    assert QUICKSTART[kind].spec.image is None
    assert image_of(SET.completed(QUICKSTART[kind])) == image
    own = with_spec(QUICKSTART[kind], image="own:1")
    assert SET.completed(own) is own


def test_what_has_no_servers_is_left_as_it_is():
    assert SET.completed(QUICKSTART["Tablespace"]) is QUICKSTART["Tablespace"]


def test_no_pod_is_made_of_a_resource_that_has_no_image_yet():
    with pytest.raises(ValueError, match="HerdDBCluster db has no image"):
        image_of(QUICKSTART["HerdDBCluster"])


def test_without_settings_the_images_are_those_that_this_version_builds():
    assert SHIPPED_IMAGES.bookkeeper == f"herdkeeper/bookkeeper:{VERSION}"
