"""The processes of one pod, as its machine sees them: what a scenario kills at once, without the grace that Kubernetes gives."""

from __future__ import annotations

from herdkeeper_e2e.kubectl import Object


def processes_of(pod: Object, pattern: str) -> str:
    """Shell that prints those whose command line matches `pattern` (of pgrep, without quotes). Other pods of a machine may run the same."""
    control_group = pod["metadata"]["uid"].replace("-", "[-_]")
    return f"for found in $(pgrep -f '{pattern}'); do if grep -q 'pod{control_group}' /proc/$found/cgroup; then echo $found; fi; done"


def kill(pod: Object, pattern: str) -> str:
    """Shell that sends them SIGKILL. It fails when they have ended before."""
    # one that ends with the one before it is no failure: a container's first process takes the others along
    each = f"for one in $({processes_of(pod, pattern)}); do kill -9 $one 2>/dev/null && killed=yes; done"
    return f'{each}; test -n "$killed"'
