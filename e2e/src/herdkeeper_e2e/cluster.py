"""The test cluster and what is installed into it, by the project's scripts: engine, kind, images, the operator's chart."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
OPERATOR_NAMESPACE = "herdkeeper-system"
RELEASE = "herdkeeper"


class CommandError(RuntimeError):
    """A script or program ended with an error; the message holds its last lines."""


def run(command: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> str:
    """Standard output of a program. What it says on standard error goes to `say`, line by line. Raises CommandError."""
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    last: list[str] = []
    if process.stderr is None or process.stdout is None:
        raise CommandError("no pipes")
    # both pipes are read at once: a program that fills one while the other is awaited would never end
    with ThreadPoolExecutor(1) as reader:
        output = reader.submit(process.stdout.read)
        for line in process.stderr:
            last = [*last[-19:], line.rstrip()]
            say(line.rstrip())
    if process.wait() != 0:
        raise CommandError(f"`{shlex.join(command)}` ended with code {process.returncode}: {' | '.join(last[-3:])}")
    return output.result()


def prepare(say: Callable[[str], None]) -> dict[str, str]:
    """Makes the cluster with all images in it, or finds it; the environment with which kubectl and helm reach it."""
    run([str(REPOSITORY / "e2e/bootstrap/prepare.sh")], os.environ, say)
    return cluster_environment()


def cluster_environment() -> dict[str, str]:
    """The environment of the cluster that is there: KUBECONFIG, and PATH with the tools."""
    text = run([str(REPOSITORY / "e2e/kind/cluster.sh"), "env"], os.environ, lambda _: None)
    environment = dict(os.environ)
    for line in text.splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        environment[name] = "".join(shlex.split(value.replace('"$PATH"', shlex.quote(environment["PATH"]))))
    return environment


def install_operator(environment: Mapping[str, str], say: Callable[[str], None], resync_seconds: int = 60) -> None:
    """Installs the chart, or upgrades it. A changed image under the same tag restarts the operator."""
    image = run(["docker", "image", "inspect", "-f", "{{.Id}}", "herdkeeper/operator:0.1.0"], environment, say).strip()
    command = [
        *("helm", "upgrade", "--install", RELEASE, "charts/herdkeeper"),
        *("--namespace", OPERATOR_NAMESPACE, "--create-namespace", "--wait", "--timeout", "5m"),
        *("--set", f"resyncSeconds={resync_seconds}"),
        *("--set-string", f"podAnnotations.herdkeeper\\.io/image={image.removeprefix('sha256:')[:16]}"),
    ]
    run(command, environment, say)
