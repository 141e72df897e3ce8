"""A quickstart that a scenario has for itself, in a namespace of its own beside the others' stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import yaml
from conftest import NAMESPACE, QUICKSTART, START, Stack, begin_anew, say

from herdkeeper_e2e import built_images
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import all_ready
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import wait_for

PLAIN_TEXT: Object = {"security": {"mode": "Insecure"}}
"""Of a ZooKeeperCluster: the stack has no certificates."""


@contextmanager
def plain_stack(kubectl: Kubectl) -> Iterator[Stack]:
    """A quickstart without certificates, on three bookies."""
    with stack_of_its_own(kubectl, "plain", {"ZooKeeperCluster": PLAIN_TEXT, "BookKeeperCluster": {"bookies": 3}}) as stack:
        yield stack


@contextmanager
def stack_of_its_own(
    kubectl: Kubectl, name: str, changes: Mapping[str, Object], tools_image: str = built_images.OPERATOR, more: Sequence[Object] = ()
) -> Iterator[Stack]:
    """The quickstart, Ready, with what `changes` has for the spec of a kind, `more` manifests, and a pod of this image; all of it goes
    with the block."""
    documents = list(yaml.safe_load_all((REPOSITORY / "examples/quickstart.yaml").read_text()))
    for document in documents:
        document["spec"] |= changes.get(document["kind"], {})
    own = kubectl.in_namespace(f"{NAMESPACE}-{name}")
    begin_anew(own)
    own.apply_all([*documents, *more])
    wait_for(f"the quickstart of {own.namespace}", lambda: all_ready(own.list(QUICKSTART), 4), START, say)
    tools = ToolsPod(own, "tools", Database.of(own, "db", "bk", "flights"), image=tools_image)
    tools.start()
    yield Stack(own, tools)
    own.run("delete", "namespace", own.namespace, "--wait=false")
