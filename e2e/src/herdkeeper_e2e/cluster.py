"""The test cluster and its content, by the project's scripts: engine, kind, images, the operator's chart."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from herdkeeper_e2e import built_images

REPOSITORY = Path(__file__).resolve().parents[3]
OPERATOR_NAMESPACE = "herdkeeper-system"
RELEASE = "herdkeeper"


class CommandError(RuntimeError):
    """A script or program failed. The message has its last lines."""


def run(command: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> str:
    """Returns standard output of a program. Its standard error goes to `say`, line by line. Raises CommandError."""
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    last: list[str] = []
    if process.stderr is None or process.stdout is None:
        raise CommandError("no pipes")
    # both pipes are read concurrently: a program that fills one while only the other is read would hang
    with ThreadPoolExecutor(1) as reader:
        output = reader.submit(process.stdout.read)
        for line in process.stderr:
            last = [*last[-19:], line.rstrip()]
            say(line.rstrip())
    if process.wait() != 0:
        raise CommandError(f"`{shlex.join(command)}` ended with code {process.returncode}: {' | '.join(last[-3:])}")
    return output.result()


def prepare(say: Callable[[str], None]) -> dict[str, str]:
    """Create or find the cluster with all images; returns the environment for kubectl and helm."""
    run([str(REPOSITORY / "e2e/bootstrap/prepare.sh")], os.environ, say)
    return cluster_environment()


def cluster_environment() -> dict[str, str]:
    """Returns the environment of the existing cluster: KUBECONFIG, and PATH with the tools."""
    text = run([str(REPOSITORY / "e2e/kind/cluster.sh"), "env"], os.environ, lambda _: None)
    environment = dict(os.environ)
    for line in text.splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        environment[name] = "".join(shlex.split(value.replace('"$PATH"', shlex.quote(environment["PATH"]))))
    return environment


def audit_log(environment: Mapping[str, str]) -> Iterator[bytes]:
    """Yields the lines of what the cluster's API server has logged of the operator. Raises CommandError, in the end: a cluster that an
    earlier version made logs nothing.
    """
    command = [str(REPOSITORY / "e2e/kind/cluster.sh"), "audit-log"]
    with subprocess.Popen(command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        yield from process.stdout or ()
    if process.returncode != 0:
        raise CommandError(f"`{shlex.join(command)}` ended with code {process.returncode}")


def install_operator(environment: Mapping[str, str], say: Callable[[str], None], resync_seconds: int = 60, *settings: str) -> None:
    """Install or upgrade the chart. A changed image with the same tag restarts the operator. `settings` are further ones (`name=JSON`)."""
    command = [
        *("helm", "upgrade", "--install", RELEASE, "charts/herdkeeper"),
        *("--namespace", OPERATOR_NAMESPACE, "--create-namespace", "--wait", "--timeout", "5m"),
        *("--set", f"resyncSeconds={resync_seconds}"),
        *(word for setting in settings for word in ("--set-json", setting)),
        *("--set-string", f"podAnnotations.herdkeeper\\.io/image={operator_image(environment, say)}"),
    ]
    run(command, environment, say)


def operator_image(environment: Mapping[str, str], say: Callable[[str], None]) -> str:
    """Returns what identifies the operator's image: the first digits of its id."""
    image = run(["docker", "image", "inspect", "-f", "{{.Id}}", built_images.OPERATOR], environment, say).strip()
    return image.removeprefix("sha256:")[:16]
