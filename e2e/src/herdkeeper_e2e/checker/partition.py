"""Parts a pod from others: rules in the packet filter of its machine drop what they send each other.

The cluster's pod network routes every packet of a pod through its machine's FORWARD chain, also between pods of one machine. The rules are
in a chain of their own, so that taking them back needs nothing but its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.sql_stack import SqlStack

CHAIN = "HERDKEEPER-FAULT"
REMOVE = f"iptables -w -D FORWARD -j {CHAIN}; iptables -w -F {CHAIN}; iptables -w -X {CHAIN}; true"


def script(pod: str, others: Sequence[str]) -> str:
    """The shell script that parts one address from others, for the machine of the pod."""
    rules = [f"iptables -w -A {CHAIN} -s {one} -d {another} -j DROP" for other in others for one, another in ((pod, other), (other, pod))]
    return " && ".join([f"iptables -w -N {CHAIN}", *rules, f"iptables -w -I FORWARD -j {CHAIN}"])


@contextmanager
def parted(stack: SqlStack, pod: str, others: Sequence[Object]) -> Iterator[None]:
    """While the block runs, a pod of the stack's namespace and the others exchange no packet. CommandError when the rules can't be set."""
    machine = stack.node_of(pod)
    address = str(stack.get("pod", pod)["status"]["podIP"])
    try:
        stack.on_machine(machine, script(address, [str(other["status"]["podIP"]) for other in others]))
        yield
    finally:
        stack.on_machine(machine, f"{{ {REMOVE}; }} 2>/dev/null")


def heal(stack: SqlStack) -> None:
    """Takes back what an earlier run may have left behind, on every machine."""
    for machine in stack.machines():
        stack.on_machine(machine, f"{{ {REMOVE}; }} 2>/dev/null")
