"""Cuts a pod off from others by packet filter rules on its machine.

The cluster's network routes every packet of a pod through its machine's FORWARD chain, even between pods of one machine. Each partition has
its own chain, so that its name is enough to remove it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.sql_stack import SqlStack

CHAIN = "HERDKEEPER-FAULT"
CHAINS = f"iptables -w -S | sed -n 's/^-N \\({CHAIN}-[0-9]*\\)$/\\1/p'"


def script(number: int, pod: str, others: Sequence[str]) -> str:
    """Returns the shell script of partition `number`, for the pod's machine: it cuts one address off from others."""
    chain = f"{CHAIN}-{number}"
    rules = [f"iptables -w -A {chain} -s {one} -d {another} -j DROP" for other in others for one, another in ((pod, other), (other, pod))]
    return " && ".join([f"iptables -w -N {chain}", *rules, f"iptables -w -I FORWARD -j {chain}"])


def removal(chains: str) -> str:
    """Returns the shell script that removes partitions; `chains`: their names, or shell that prints them."""
    each = "iptables -w -D FORWARD -j $chain; iptables -w -F $chain; iptables -w -X $chain"
    return f"for chain in {chains}; do {each}; done 2>/dev/null; true"


@contextmanager
def parted(stack: SqlStack, number: int, pod: str, others: Sequence[Object]) -> Iterator[None]:
    """Within the block, a pod of the stack's namespace and the others exchange no packet. Concurrent partitions need different numbers.
    Raises CommandError if the rules can't be set.
    """
    machine = stack.node_of(pod)
    address = str(stack.get("pod", pod)["status"]["podIP"])
    try:
        stack.on_machine(machine, script(number, address, [str(other["status"]["podIP"]) for other in others]))
        yield
    finally:
        stack.on_machine(machine, removal(f"{CHAIN}-{number}"))


def heal(stack: SqlStack) -> None:
    """Remove partitions of an earlier run on every machine."""
    for machine in stack.machines():
        stack.on_machine(machine, removal(f"$({CHAINS})"))
