"""The processes of one pod on its machine, for a kill without Kubernetes' grace period."""

from __future__ import annotations

from herdkeeper_e2e.kubectl import Object


def processes_of(pod: Object, pattern: str) -> str:
    """Returns shell that prints those whose command line matches `pattern` (of pgrep, without quotes). Other pods of the machine may run
    the same.
    """
    control_group = pod["metadata"]["uid"].replace("-", "[-_]")
    return f"for found in $(pgrep -f '{pattern}'); do if grep -q 'pod{control_group}' /proc/$found/cgroup; then echo $found; fi; done"


def kill(pod: Object, pattern: str) -> str:
    """Returns shell that sends them SIGKILL. It fails if they have already ended."""
    # one that ends with the previous one is no failure: a container's first process takes the others along
    each = f"for one in $({processes_of(pod, pattern)}); do kill -9 $one 2>/dev/null && killed=yes; done"
    return f'{each}; test -n "$killed"'
