"""Other authorities take over from those of a stack, on request, under a writer: members restart three times, one at a time, nothing else
does, and nothing that was acknowledged is lost. Then nobody lets in the old one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Stack
from secure_steps import authorities, held, only_readers_are_served, others_take_over, secrets_are_shown, secure_stack
from under_load import during, settled, uids, under_load

from herdkeeper.certificates.authority import authority_data
from herdkeeper.shared.names import ROLL_AUTHORITIES_ANNOTATION, ROLL_AUTHORITIES_ANSWER_ANNOTATION
from herdkeeper_e2e.kubectl import Kubectl


@pytest.fixture(scope="module")
def secure(kubectl: Kubectl) -> Iterator[Stack]:
    with secure_stack(kubectl) as stack:
        yield stack


def test_other_authorities_take_over_under_load_and_the_old_ones_are_refused(secure: Stack) -> None:
    settled(secure)
    before, old = uids(secure), held(secure, "bk-bookie-readers")
    with under_load(secure, "rolled_authorities") as writer:
        with during("other authorities are asked for", writer):
            secure.kubectl.run("annotate", "zookeepercluster", "zk", f"{ROLL_AUTHORITIES_ANNOTATION}=now")
            others_take_over(secure)
        with during("the old authorities are gone", writer):
            secrets_are_shown(secure)

        for fault, pod in (("a bookie connects anew", "bk-bookie-1-0"), ("a member connects anew", secure.sql.leader_of_zookeeper())):
            with during(fault, writer):
                secure.sql.delete(pod)
                settled(secure)
    answer = secure.sql.get("zookeepercluster", "zk")["metadata"]["annotations"][ROLL_AUTHORITIES_ANSWER_ANNOTATION]
    assert answer == "done: zk clients 2 takes over and zk quorum 2 takes over"
    restarted = {name for name, uid in uids(secure).items() if before.get(name) != uid}
    assert restarted == {*(f"zk-zookeeper-{number}" for number in range(3)), "bk-bookie-1-0"}
    for state in authorities(secure):
        assert authority_data(state).keys() == {"generation", "signing.crt", "signing.key"}

    only_readers_are_served(secure, old)
