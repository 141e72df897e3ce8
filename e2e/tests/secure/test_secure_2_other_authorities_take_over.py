"""Other authorities take over from those of a stack, on request, under a writer: members restart three times, one at a time, nothing else
does, and nothing that was acknowledged is lost. Then nobody lets in the old one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from conftest import Stack, say
from secure_steps import SHOWN, all_show, authorities, certificates_in_secrets, held, outcomes, rolled, secure_stack
from under_load import settled, uids, under_load

from herdkeeper.certificates.authority import authority_data
from herdkeeper.shared.names import ROLL_AUTHORITIES_ANNOTATION, ROLL_AUTHORITIES_ANSWER_ANNOTATION
from herdkeeper_e2e.certificate_probe import SERVED
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.waiting import Limit, wait_for

ROWS = 50
ROLLED = Limit(5700, 10)
"""Three rolls of the members, and three times ten minutes for kubelets."""
TAKEN_UP = Limit(600, 5)


@pytest.fixture(scope="module")
def secure(kubectl: Kubectl) -> Iterator[Stack]:
    with secure_stack(kubectl) as stack:
        yield stack


def test_other_authorities_take_over_under_load_and_the_old_ones_are_refused(secure: Stack) -> None:
    settled(secure)
    before, old = uids(secure), held(secure, "bk-bookie-readers")
    with under_load(secure, "rolled_authorities") as writer:
        writer.acknowledges(ROWS)
        began = time.monotonic()
        writer.marked("other authorities are asked for")
        secure.kubectl.run("annotate", "zookeepercluster", "zk", f"{ROLL_AUTHORITIES_ANNOTATION}=now")
        wait_for("other authorities", lambda: rolled(secure), ROLLED, say)
        say(f"other authorities after {time.monotonic() - began:.0f} s")
        settled(secure)
        writer.marked("the old authorities are gone")
        certificates = certificates_in_secrets(secure)
        wait_for("their certificates", lambda: all_show(secure, {secret: certificates[secret] for secret in SHOWN.values()}), TAKEN_UP, say)
        writer.acknowledges(ROWS)

        for fault, pod in (("a bookie connects anew", "bk-bookie-1-0"), ("a member connects anew", secure.sql.leader_of_zookeeper())):
            writer.marked(fault)
            secure.sql.delete(pod)
            settled(secure)
            writer.acknowledges(ROWS)
    answer = secure.sql.get("zookeepercluster", "zk")["metadata"]["annotations"][ROLL_AUTHORITIES_ANSWER_ANNOTATION]
    assert answer == "done: zk clients 2 takes over and zk quorum 2 takes over"
    restarted = {name for name, uid in uids(secure).items() if before.get(name) != uid}
    assert restarted == {*(f"zk-zookeeper-{number}" for number in range(3)), "bk-bookie-1-0"}
    for state in authorities(secure):
        assert authority_data(state).keys() == {"generation", "signing.crt", "signing.key"}

    new = held(secure, "bk-bookie-readers")
    found = outcomes(secure, {"a reader": new, "a reader of before": {**old, "ca.crt": new["ca.crt"]}})
    assert found["zookeeper", "a reader"] == found["bookie", "a reader"] == {SERVED}
    assert not [key for key, became in found.items() if key[1] == "a reader of before" and SERVED in became]
