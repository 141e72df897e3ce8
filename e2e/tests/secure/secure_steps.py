"""A small stack whose servers know one another by certificates, and what its scenario does with it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from ssl import PEM_cert_to_DER_cert

from conftest import Stack, say
from own_stack import stack_of_its_own
from under_load import settled

from herdkeeper.certificates.authority import Authority, first_authority, read_authority
from herdkeeper.certificates.holders import secret_data
from herdkeeper.certificates.issue import AUTHORITY_LIFE, CERTIFICATE_LIFE, Subject, Validity, fresh_key, issue
from herdkeeper.shared.names import CERTIFICATE_KEY
from herdkeeper_e2e import built_images
from herdkeeper_e2e.certificate_probe import PLAIN, SERVED
from herdkeeper_e2e.cluster import run
from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.short_lived import Span, short_lived
from herdkeeper_e2e.tls_probe import fingerprint
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

Files = dict[str, str]
"""What a Secret holds, as text."""
AUTHORITIES = ("zk-zookeeper-authority", "zk-zookeeper-quorum-authority")
CLAIMS = ("checkpoints", "archives")
SMALL: Mapping[str, Object] = {
    "BookKeeperCluster": {"bookies": 3},
    "HerdDBCluster": {"ledgers": {"ensembleSize": 2, "writeQuorum": 2, "ackQuorum": 2, "maxSize": "64Mi"}},
}
"""What the quickstart gets instead: two copies of each entry, on three bookies, so that one can be away, or leave."""
IDENTITIES = {
    "zk-zookeeper-clients": AUTHORITIES[0],
    "zk-zookeeper-operator": AUTHORITIES[0],
    "bk-bookie-identity": AUTHORITIES[0],
    "bk-bookie-readers": AUTHORITIES[0],
    "db-herddb-identity": AUTHORITIES[0],
    "zk-zookeeper-quorum": AUTHORITIES[1],
}
"""The Secret of each certificate, with that of who signs it."""
SHOWN = {"zookeeper": "zk-zookeeper-clients", "bookie": "bk-bookie-identity", "sql": "db-herddb-identity", "http": "db-herddb-identity"}
"""The Secret of what is shown at each port that is for clients."""
ROLLED = Limit(5700, 10)
"""Three rolls of the members, and three times ten minutes for kubelets."""


@contextmanager
def secure_stack(kubectl: Kubectl, ensemble: Object | None = None, more: Sequence[Object] = ()) -> Iterator[Stack]:
    """A small quickstart, Ready, in a namespace of its own, with `more` manifests, and a pod with the jobs' image; all of it goes with the
    block. Its servers have certificates, unless the ZooKeeperCluster's spec gets something else by `ensemble`.
    """
    with stack_of_its_own(kubectl, "secure", {**SMALL, "ZooKeeperCluster": ensemble or {}}, built_images.SPARK, more) as stack:
        yield stack


def held(stack: Stack, secret: str) -> Files:
    """What is in a Secret."""
    return stack.kubectl.secret(secret)


def authorities(stack: Stack) -> list[Authority]:
    """Both of the stack, that of the quorum last."""
    return [read_authority(secret, held(stack, secret)) for secret in AUTHORITIES]


def rolled(stack: Stack) -> bool | Pending:
    """Whether both authorities are the second ones, and nothing follows them."""
    if all(state.generation == 2 and not state.is_rolling for state in authorities(stack)):
        return True
    return Pending(told_of_authorities(stack) or "it is not begun")


def told_of_authorities(stack: Stack) -> str | None:
    """What the ensemble's condition AuthoritiesRolled tells; None while there is nothing to tell."""
    told = condition(stack.sql.get("zookeepercluster", "zk"), "AuthoritiesRolled")
    return None if told is None else str(told["message"])


def people(stack: Stack) -> dict[str, Files]:
    """Who tries the ports: holders of certificates of the stack, and one of another stack with the same names. Each trusts this one."""
    reader, member = held(stack, "bk-bookie-readers"), held(stack, "zk-zookeeper-quorum")
    now = datetime.now(UTC)
    elsewhere = first_authority("zk clients", fresh_key(), Validity(now, AUTHORITY_LIFE))
    same_subject = issue(elsewhere.signing, Subject("readers.bk", "bk"), [], fresh_key(), Validity(now, CERTIFICATE_LIFE))
    return {
        "a reader": reader,
        "the operator": held(stack, "zk-zookeeper-operator"),
        "another stack": {**secret_data(same_subject, elsewhere), "ca.crt": reader["ca.crt"]},
        "a member": member,
        # each with a certificate that is good elsewhere, and would trust whom it tries
        "a reader among members": {**reader, "ca.crt": member["ca.crt"]},
        "a member among clients": {**member, "ca.crt": reader["ca.crt"]},
    }


def outcomes(stack: Stack, who: Mapping[str, Files] | None = None) -> dict[tuple[str, str], set[str]]:
    """By port and by who tries it (those of `people` by default), what became of that at each server."""
    said = probed(stack, json.dumps(people(stack) if who is None else who))
    found: dict[tuple[str, str], set[str]] = {}
    for each in said:
        found.setdefault((each["port"], each["who"]), set()).add(each["outcome"])
    return found


def only_the_stack_is_served(stack: Stack) -> None:
    """Each port serves who has a certificate of the stack for it, and nobody else."""
    found = outcomes(stack)
    for (port, who), became in sorted(found.items()):
        say(f"{port} for {who}: {', '.join(sorted(became))}")
    assert {key for key, became in found.items() if SERVED in became} == {
        ("zookeeper", "a reader"),
        ("zookeeper", "the operator"),
        ("election", "a member"),
        ("bookie", "a reader"),
    }
    assert not [key for key, became in found.items() if SERVED in became and became != {SERVED}]
    plain = {port for port, who in found if who == PLAIN}
    assert {"zookeeper", "election", "2181", "2182", "bookie", "http"} <= plain


def only_readers_are_served(stack: Stack, stranger: Files) -> None:
    """A reader of the stack is served, and nobody who has another certificate and trusts the same authorities."""
    reader = held(stack, "bk-bookie-readers")
    found = outcomes(stack, {"a reader": reader, "a stranger": {**stranger, "ca.crt": reader["ca.crt"]}})
    assert found["zookeeper", "a reader"] == found["bookie", "a reader"] == {SERVED}
    assert not [key for key, became in found.items() if key[1] == "a stranger" and SERVED in became]


def others_take_over(stack: Stack) -> None:
    """Comes back once other authorities have taken over, and all is settled."""
    wait_for("other authorities", lambda: rolled(stack), ROLLED, say)
    settled(stack)


def secrets_are_shown(stack: Stack) -> None:
    """Comes back once each server shows the certificate of its Secret to clients."""
    wait_for("the Secrets' certificates", lambda: all_show(stack, certificates_in_secrets(stack)), Limit(600, 5), say)


def certificates(stack: Stack) -> dict[tuple[str, str], str]:
    """By host and port of each server the fingerprint of what it shows to clients."""
    return {(each["server"], each["port"]): each["certificate"] for each in probed(stack, "{}")}


def probed(stack: Stack, given: str) -> list[Object]:
    root = stack.sql.get("bookkeepercluster", "bk")["status"]["ledgersRoot"]
    program = stack.tools.program("certificate_probe", "--ledgers-root", root, *node_hosts(stack))
    said = stack.kubectl.exec(stack.tools.name, *program, stdin=given.encode())
    return [json.loads(line) for line in said.splitlines()]


def node_hosts(stack: Stack) -> list[str]:
    """The host names of the SQL nodes."""
    return [stack.sql.host_of(node) for node in sorted(stack.sql.replicas())]


def replace_certificates(stack: Stack, span: Span) -> dict[str, str]:
    """All of the stack's by others that live for minutes; these, by Secret."""
    short = {secret: short_lived(held(stack, secret), held(stack, authority), span) for secret, authority in IDENTITIES.items()}
    for secret, data in short.items():
        stack.kubectl.change_secret(secret, data)
    return {secret: data[CERTIFICATE_KEY] for secret, data in short.items()}


def certificates_in_secrets(stack: Stack) -> dict[str, str]:
    """By Secret what is there now."""
    return {secret: held(stack, secret)[CERTIFICATE_KEY] for secret in IDENTITIES}


def all_show(stack: Stack, wanted: Mapping[str, str]) -> bool | Pending:
    """Whether each server shows the certificate of its Secret to clients."""
    shown = {port: fingerprint(PEM_cert_to_DER_cert(wanted[secret])) for port, secret in SHOWN.items()}
    others = sorted(host.partition(".")[0] for (host, port), certificate in certificates(stack).items() if certificate != shown[port])
    return Pending(f"it is not shown by {', '.join(others)}") if others else True


def sql(stack: Stack, tablespace: str, statement: str) -> list[Object]:
    """The rows of a SELECT by `kubectl herdkeeper sql`, from outside of the cluster."""
    arguments = ("sql", tablespace, "--namespace", stack.kubectl.namespace, "--output", "json", "--command", statement)
    path = os.pathsep.join(sys.path)
    said = run([sys.executable, "-m", "herdkeeper.plugin.main", *arguments], {**stack.kubectl.environment, "PYTHONPATH": path}, say)
    (result,) = json.loads(said)["results"]
    rows: list[Object] = result["rows"]
    return rows
