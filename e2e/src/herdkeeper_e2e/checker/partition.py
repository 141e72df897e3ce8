"""Parts a pod from others: rules in the packet filter of its machine drop what they send each other.

The cluster's pod network routes every packet of a pod through its machine's FORWARD chain, also between pods of one machine. The rules of
each partition are in a chain of its own, so that taking them back needs nothing but its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.sql_stack import SqlStack

CHAIN = "HERDKEEPER-FAULT"
CHAINS = f"iptables -w -S | sed -n 's/^-N \\({CHAIN}-[0-9]*\\)$/\\1/p'"


def script(number: int, pod: str, others: Sequence[str]) -> str:
    """The shell script of partition `number` that parts one address from others, for the machine of the pod."""
    chain = f"{CHAIN}-{number}"
    rules = [f"iptables -w -A {chain} -s {one} -d {another} -j DROP" for other in others for one, another in ((pod, other), (other, pod))]
    return " && ".join([f"iptables -w -N {chain}", *rules, f"iptables -w -I FORWARD -j {chain}"])


def removal(chains: str) -> str:
    """The shell script that takes partitions back; `chains`: their names, or shell that prints them."""
    each = "iptables -w -D FORWARD -j $chain; iptables -w -F $chain; iptables -w -X $chain"
    return f"for chain in {chains}; do {each}; done 2>/dev/null; true"


@contextmanager
def parted(stack: SqlStack, number: int, pod: str, others: Sequence[Object]) -> Iterator[None]:
    """While the block runs, a pod of the stack's namespace and the others exchange no packet. Partitions at the same time have different
    numbers. CommandError when the rules can't be set."""
    machine = stack.node_of(pod)
    address = str(stack.get("pod", pod)["status"]["podIP"])
    try:
        stack.on_machine(machine, script(number, address, [str(other["status"]["podIP"]) for other in others]))
        yield
    finally:
        stack.on_machine(machine, removal(f"{CHAIN}-{number}"))


def heal(stack: SqlStack) -> None:
    """Takes back what an earlier run may have left behind, on every machine."""
    for machine in stack.machines():
        stack.on_machine(machine, removal(f"$({CHAINS})"))
