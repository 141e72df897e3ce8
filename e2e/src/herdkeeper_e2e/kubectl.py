"""Kubernetes through kubectl, as a person would type it, so that a failure can be repeated by hand."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from herdkeeper.api.resource import API_VERSION
from herdkeeper_e2e.waiting import Pending

Object = dict[str, Any]
"""A Kubernetes object as JSON."""
SERVERS = "app.kubernetes.io/name in (zookeeper,bookie,herddb)"
"""Selects the pods of a stack that hold data."""


def resource(kind: str, name: str, labels: Mapping[str, str] | None = None, /, **spec: object) -> Object:
    """The manifest of one of the project's resources."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


class KubectlError(RuntimeError):
    """kubectl failed. The message has the command and its output."""

    def __init__(self, command: Sequence[str], said: str) -> None:
        super().__init__(f"`{' '.join(command)}` failed: {said.strip()[-2000:]}")
        self.said = said


@dataclass(frozen=True)
class Kubectl:
    """kubectl in one namespace. `environment` names the cluster (KUBECONFIG) and where kubectl is (PATH)."""

    namespace: str
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def in_namespace(self, namespace: str) -> Kubectl:
        return replace(self, namespace=namespace)

    def command(self, *arguments: str) -> list[str]:
        return ["kubectl", "--namespace", self.namespace, *arguments]

    def run(self, *arguments: str, stdin: bytes = b"", timeout_seconds: float = 120.0) -> str:
        """Standard output of kubectl.

        Raises:
            KubectlError: a non-zero exit code, or no end within the timeout.
        """
        command = self.command(*arguments)
        try:
            ended = subprocess.run(
                command, input=stdin, capture_output=True, env=dict(self.environment), timeout=timeout_seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlError(command, f"no end within {timeout_seconds:g} s") from error
        if ended.returncode != 0:
            raise KubectlError(command, ended.stderr.decode(errors="replace") or ended.stdout.decode(errors="replace"))
        return ended.stdout.decode(errors="replace")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """kubectl with open pipes, for a stream. The caller ends it."""
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            env=dict(self.environment),
        )

    def get(self, kind: str, name: str) -> Object | None:
        """An object; None when there is none."""
        text = self.run("get", kind, name, "--ignore-not-found", "-o", "json")
        return _object(text) if text.strip() else None

    def existing(self, kind: str, name: str) -> Object:
        """An object that must be there. Raises KeyError."""
        found = self.get(kind, name)
        if found is None:
            raise KeyError(f"{kind} {name}")
        return found

    def gone(self, kind: str, name: str) -> bool | Pending:
        """Whether there is no such object any more; while there is one, what its status tells."""
        found = self.get(kind, name)
        return True if found is None else Pending(f"{name} is still there: {found.get('status', {}).get('message')}")

    def list(self, kinds: str, selector: str = "") -> list[Object]:
        """The objects of one or more kinds (`pods,secrets`), by label selector; sorted by kind and name."""
        items = _object(self.run("get", kinds, "-o", "json", *(["-l", selector] if selector else [])))["items"]
        return sorted(items, key=lambda item: (str(item["kind"]), str(item["metadata"]["name"])))

    def apply(self, manifest: Path | str | Object) -> str:
        """`kubectl apply` of a file, of text, or of an object; returns what kubectl says about each object."""
        if isinstance(manifest, Path):
            return self.run("apply", "-f", str(manifest))
        return self.run("apply", "-f", "-", stdin=(manifest if isinstance(manifest, str) else json.dumps(manifest)).encode())

    def apply_all(self, items: Sequence[Object]) -> None:
        """`kubectl apply` of several objects at once."""
        self.apply({"apiVersion": "v1", "kind": "List", "items": items})

    def want(self, kind: str, name: str, **spec: object) -> None:
        """Change these fields of an object's spec and no others, also within mapping fields. None removes a field."""
        self.run("patch", kind, name, "--type", "merge", "-p", json.dumps({"spec": spec}))

    @contextmanager
    def paused(self, kind: str, name: str) -> Iterator[None]:
        """The operator does nothing about a resource as long as the block lasts."""
        self.run("annotate", "--overwrite", kind, name, "herdkeeper.io/paused=true")
        try:
            yield
        finally:
            self.run("annotate", "--overwrite", kind, name, "herdkeeper.io/paused-")

    def secret(self, name: str) -> dict[str, str]:
        """Returns what an existing Secret holds, as text. Raises KeyError."""
        return {key: base64.b64decode(value).decode() for key, value in self.existing("secret", name)["data"].items()}

    def create_secret(self, name: str, values: Mapping[str, str]) -> None:
        self.run("create", "secret", "generic", name, *(f"--from-literal={key}={value}" for key, value in values.items()))

    def change_secret(self, name: str, values: Mapping[str, str]) -> None:
        """Give some keys of a Secret other values."""
        self.run("patch", "secret", name, "--type", "merge", "-p", json.dumps({"stringData": values}))

    def exec(self, pod: str, *command: str, stdin: bytes = b"", timeout_seconds: float = 600.0) -> str:
        """Standard output of a program in a pod's first container.

        Raises:
            KubectlError: it ended with an error.
        """
        return self.run("exec", *(["-i"] if stdin else []), pod, "--", *command, stdin=stdin, timeout_seconds=timeout_seconds)


def _object(text: str) -> Object:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError(f"kubectl answered no JSON object: {text[:200]}")
    return value
