"""A quickstart that a scenario has for itself, in a namespace of its own beside the others' stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import yaml
from conftest import NAMESPACE, Stack, begin_anew, ready_stack

from herdkeeper_e2e import built_images
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.kubectl import Kubectl, Object

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
    yield ready_stack(own, tools_image)
    own.run("delete", "namespace", own.namespace, "--wait=false")
