"""The processes of one pod, as its machine sees them: what a scenario kills at once, without the grace that Kubernetes gives."""

from __future__ import annotations

from herdkeeper_e2e.kubectl import Object

TRIES = 12_000
INTERVAL_SECONDS = 0.05


def processes_of(pod: Object, pattern: str) -> str:
    """Shell that prints those whose command line matches `pattern` (of pgrep, without quotes). Other pods of a machine may run the same."""
    control_group = pod["metadata"]["uid"].replace("-", "[-_]")
    return f"for found in $(pgrep -f '{pattern}'); do if grep -q 'pod{control_group}' /proc/$found/cgroup; then echo $found; fi; done"


def kill_once(pod: Object, pattern: str, condition: str = "true") -> str:
    """Shell that sends them SIGKILL a tenth of a second, at most, after a condition of the shell holds on their machine.

    It fails when they have ended before, and when the condition does not hold for ten minutes.
    """
    # one that ends with the one before it is no failure: a container's first process takes the others along
    each = f"for one in $({processes_of(pod, pattern)}); do kill -9 $one 2>/dev/null && killed=yes; done"
    kill = f'{each}; test -n "$killed"'
    return f"for try in $(seq {TRIES}); do if {condition}; then {kill}; exit; fi; sleep {INTERVAL_SECONDS}; done; exit 1"
