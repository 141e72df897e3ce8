"""While SQL and a client with striped ledgers write, two of three ZooKeeper members lose their volumes: they elect no empty tree,
bookies delete nothing, the resource says what is lost and what a person should do, and `kubectl herdkeeper recover`, as
docs/how-to/lost-quorum.md has it, brings the stack back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

from bookie_steps import bookies
from conftest import Stack, say
from ensemble_steps import Ensemble
from load import Load
from proof import both_lost_nothing, found_nothing

from herdkeeper_e2e.conditions import condition, pod_problem
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

WIPED = ("zk-zookeeper-1", "zk-zookeeper-2")
CLAIMS = tuple(f"data-{pod}" for pod in WIPED)
HOLDS_SECONDS = 60
"""An election takes a second or two: empty members that could elect each other would have done so long before."""
LEDGER = re.compile(r"/bk/ledgers/\d\d/\d{4}/L\d{4}$")
COLLECT = "import sys; from herdkeeper.bookkeeper.execute import order; order(sys.argv[1], sys.argv[2], b'{}', sys.stdin.read())"


def ledgers(stack: Stack) -> set[str]:
    """The ledgers that BookKeeper's metadata knows."""
    return {path for path in stack.tools.znodes() if LEDGER.search(path)}


def bookies_look_for_garbage(stack: Stack) -> None:
    """Each is told to delete the ledgers that metadata does not know."""
    token = stack.kubectl.secret("bk-bookie-token")["token"]
    for bookie in bookies(stack)["status"]["bookies"]:
        host = f"bk-bookie-{bookie['number']}-0.bk-bookie.{stack.kubectl.namespace}.svc"
        url = f"http://{host}:8080/api/v1/bookie/gc"
        stack.kubectl.exec(stack.tools.name, "python3", "-c", COLLECT, url, bookie["bookieId"], stdin=token.encode())


def wipe(stack: Stack) -> None:
    """The volumes of two members go for good, and their pods with them."""
    stack.kubectl.run("delete", "persistentvolumeclaims", *CLAIMS, "--wait=false")
    stack.kubectl.run("delete", "pods", *WIPED, "--grace-period=0", "--force", "--wait=false")


def run_again_and_empty(stack: Stack, before: dict[str, str]) -> bool | Pending:
    """Whether the wiped members' processes run again, on volumes of their own."""
    for name in WIPED:
        pod = stack.kubectl.get("pod", name)
        if pod is None or pod["metadata"]["uid"] == before[name]:
            return Pending(f"{name} is not there yet")
        if not any("running" in container["state"] for container in pod["status"].get("containerStatuses", [])):
            return Pending(f"{name}: {pod_problem(pod)}")
    return True


def why_lost(ensemble: Ensemble) -> str | Pending:
    """What the resource says of its quorum."""
    ready = condition(ensemble.seen(), "Ready")
    if ready is None or ready["status"] == "True" or ready["reason"] != "QuorumLost":
        return Pending(str(ready))
    empty = all(claim in ready["message"] for claim in CLAIMS)
    return str(ready["message"]) if empty else Pending(str(ready["message"]))


def nobody_serves(ensemble: Ensemble) -> bool | Pending:
    """Whether the resource says that its quorum is lost and no voter serves."""
    message = why_lost(ensemble)
    return True if isinstance(message, str) and message.startswith("0 of 3 voters serve") else Pending(str(message))


def recover(stack: Stack, *words: str) -> Object:
    """What the plugin's command answers, as a document."""
    command = [sys.executable, "-m", "herdkeeper.plugin.main", "recover", "zkc/zk", "-n", stack.kubectl.namespace, "-o", "json", *words]
    ended = subprocess.run(command, env=dict(stack.kubectl.environment), capture_output=True, text=True, check=False, timeout=120)
    return dict(json.loads(ended.stdout)) if ended.stdout else {"state": ended.stderr}


def lost_for_good(stack: Stack) -> Object | Pending:
    """What `recover` says once it knows what each member holds."""
    found = recover(stack)
    return found if found["state"] == "Lost" else Pending(str(found.get("message", found["state"])))


def test_two_wiped_members_elect_no_empty_tree_and_a_person_brings_the_stack_back(stack: Stack) -> None:
    ensemble = Ensemble(stack.kubectl, "zk")
    ensemble.settled_on(3)
    stack.wait_until_ready()
    load = Load(stack, "quorum_lost").acknowledges()
    known, pods = ledgers(stack), ensemble.pods()
    assert known

    began = time.monotonic()
    load.order("mark two of three ZooKeeper members wiped")
    wipe(stack)
    message = wait_for("QuorumLost", lambda: why_lost(ensemble), Limit(300), say)
    say(f"after {time.monotonic() - began:.0f} s: {message}")
    assert "'When a quorum is lost'" in message
    wait_for("the empty members", lambda: run_again_and_empty(stack, pods), Limit(300), say)
    # until the kubelet has asked the one that is left it counts as serving, and who asks it something meanwhile gets no answer
    wait_for("the end of the last voter's service", lambda: nobody_serves(ensemble), Limit(300), say)
    bookies_look_for_garbage(stack)
    rows, held = load.writer.acknowledged, time.monotonic()
    while time.monotonic() - held < HOLDS_SECONDS:
        assert isinstance(why_lost(ensemble), str)
        assert all(pod_problem(pod) for pod in stack.kubectl.list("pods", "app.kubernetes.io/name=zookeeper"))
    say(f"{load.writer.acknowledged - rows} rows were acknowledged in the last {HOLDS_SECONDS} s, without ZooKeeper")

    repaired = time.monotonic()
    load.order("mark a person says which member has the truth")
    found = wait_for("a verdict on each volume", lambda: lost_for_good(stack), Limit(300), say)
    say(found["message"])
    assert [member["pod"] for member in found["members"] if member["lost"]] == list(WIPED)
    assert "--accept zk-zookeeper-0" in found["ways"][-1]["way"]
    done = recover(stack, "--accept", "zk-zookeeper-0", "--yes")
    assert len(done["changes"]) == 2, done
    ensemble.settled_on(3)
    say(f"three members vote {time.monotonic() - repaired:.0f} s after the person")
    stack.wait_until_ready()
    say(f"all is Ready {time.monotonic() - repaired:.0f} s after the person")
    load.acknowledges()

    bookies_look_for_garbage(stack)
    assert known <= ledgers(stack)
    both_lost_nothing(load)
    found_nothing(stack, "after-the-quorum")
