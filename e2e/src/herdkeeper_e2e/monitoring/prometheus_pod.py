"""A real Prometheus in a pod, with the configuration that the Prometheus operator makes of the chart's monitors, and with its rules."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from herdkeeper_e2e import built_images
from herdkeeper_e2e.client_pod import client_pod, copy_into, start_pod
from herdkeeper_e2e.go_module import go_program
from herdkeeper_e2e.kubectl import Kubectl, Object

VERSION = "v3.16.0"
"""Of e2e/prometheus: the operator writes a configuration that this version reads."""
NAME = "prometheus"
LABELS = {"app.kubernetes.io/name": NAME}
_WORK, _ADDRESS = "/work", "127.0.0.1:9090"
_GET = f"""
import sys, urllib.parse, urllib.request
path, asked = sys.argv[1], urllib.parse.urlencode([tuple(each.split("=", 1)) for each in sys.argv[2:]])
print(urllib.request.urlopen(f"http://{_ADDRESS}/api/v1/{{path}}?{{asked}}", timeout=30).read().decode())
"""


@dataclass(frozen=True)
class Target:
    """What Prometheus reads, or fails to read. `labels` are those of its series."""

    labels: Mapping[str, str]
    url: str
    health: str
    error: str


@dataclass(frozen=True)
class PrometheusPod:
    """Its pod, in a namespace of its own. The pod's account may list what Prometheus looks for."""

    kubectl: Kubectl

    def start(self, rendered: Sequence[Object]) -> None:
        """Run it with the chart's monitors and rules; it answers some seconds later. `rendered` are the chart's manifests."""
        for each in self._account():
            self.kubectl.apply(each)
        start_pod(self.kubectl, self._manifest())
        rules = [each["spec"] for each in rendered if each["kind"] == "PrometheusRule"]
        files = {f"rules-{number}.yaml": yaml.safe_dump(rule).encode() for number, rule in enumerate(rules)}
        configuration = scrape_configuration(rendered) | {"rule_files": sorted(files)}
        files["prometheus.yaml"] = yaml.safe_dump(configuration).encode()
        copy_into(self.kubectl, NAME, _WORK, {**files, NAME: go_program(NAME, "linux").read_bytes()})
        settings = (f"--config.file={_WORK}/prometheus.yaml", f"--storage.tsdb.path={_WORK}/data", f"--web.listen-address={_ADDRESS}")
        run = f"cd {_WORK} && exec ./{NAME} {' '.join(settings)} >log 2>&1 </dev/null &"
        self.kubectl.exec(NAME, "sh", "-c", run)

    def log(self) -> str:
        return self.kubectl.exec(NAME, "tail", "-n", "5", f"{_WORK}/log")

    def targets(self) -> list[Target]:
        return [
            Target(each["labels"], each["scrapeUrl"], each["health"], each["lastError"]) for each in self.ask("targets")["activeTargets"]
        ]

    def rules(self) -> list[Mapping[str, Any]]:
        """Its rules, with their health and their state."""
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def query(self, text: str) -> list[Mapping[str, Any]]:
        """Returns the series of an instant query, now."""
        found: list[Mapping[str, Any]] = self.ask("query", {"query": text})["result"]
        return found

    def ask(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """Returns the data of an answer of its API. Raises KubectlError where it does not answer."""
        asked = [f"{name}={value}" for name, value in (parameters or {}).items()]
        return json.loads(self.kubectl.exec(NAME, "python3", "-c", _GET, path, *asked))["data"]

    def _manifest(self) -> Object:
        volumes = [{"name": "work", "emptyDir": {}}]
        mounts = [{"name": "work", "mountPath": _WORK}]
        command = ["sleep", "infinity"]
        pod = client_pod(NAME, {"name": NAME, "image": built_images.OPERATOR, "command": command, "volumeMounts": mounts}, volumes)
        pod["metadata"]["labels"] = LABELS
        pod["spec"] |= {"serviceAccountName": NAME, "automountServiceAccountToken": True}
        return pod

    def _account(self) -> list[Object]:
        may = {"apiGroups": [""], "resources": ["pods", "services", "endpoints"], "verbs": ["get", "list", "watch"]}
        group = "rbac.authorization.k8s.io"
        role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": self._role}, "rules": [may]}
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": self._role},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": self._role},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": self.kubectl.namespace}],
        }
        return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}}, role, binding]

    @property
    def _role(self) -> str:
        return f"{self.kubectl.namespace}-{NAME}"

    @property
    def cluster_wide(self) -> tuple[str, str]:
        """What its namespace does not take along when it is deleted, as kubectl names it."""
        return f"clusterrole/{self._role}", f"clusterrolebinding/{self._role}"


def scrape_configuration(rendered: Sequence[Object]) -> dict[str, Any]:
    """Returns what the Prometheus operator makes of the ServiceMonitors and PodMonitors, by its own code (e2e/scrape-config)."""
    monitors = "\n".join(json.dumps(each) for each in rendered if each["kind"] in ("ServiceMonitor", "PodMonitor"))
    written = subprocess.run(
        [str(go_program("scrape-config")), VERSION], input=monitors, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    # The operator's config-reloader replaces them in each pod.
    found: dict[str, Any] = yaml.safe_load(written.replace("$(SHARD)", "0").replace("$(POD_NAME)", NAME))
    return found
