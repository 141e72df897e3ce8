"""Volumes that can be full and that can grow: file systems in memory, mounted on the cluster's machines, as local volumes of one class.

The test cluster's own volumes are folders: never full before the machine's disk is, and of a provisioner that can't grow them. Here the
test is the storage's administrator, and does what a driver's controller does: it grows the file system, then says so in volume and claim.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from conftest import Stack

from herdkeeper_e2e.kubectl import Object

CLASS = "by-hand"
FOLDER = "/mnt/by-hand"


@dataclass(frozen=True)
class VolumesByHand:
    """The volumes of the class, on all machines that pods run on."""

    stack: Stack

    def provide(self, name: str, mebibytes: int, per_machine: int) -> None:
        """That many volumes on each worker, and the class unless it is there."""
        self.stack.kubectl.apply(_CLASS)
        for machine in self._workers():
            for number in range(per_machine):
                path = f"{FOLDER}/{name}-{number}"
                self._on(machine, f"mkdir -p {path} && mount -t tmpfs -o size={mebibytes}m by-hand {path}")
                self.stack.kubectl.apply(_volume(f"{name}-{machine}-{number}", machine, path, mebibytes))

    def grow(self, claim: Object, mebibytes: int) -> None:
        """What the controller of a storage driver does for a claim that asks for more."""
        volume = self._of(claim)
        machine, path = _place(volume)
        self._on(machine, f"mount -o remount,size={mebibytes}m {path}")
        capacity = {"capacity": {"storage": f"{mebibytes}Mi"}}
        kubectl = self.stack.kubectl
        kubectl.want("persistentvolume", volume["metadata"]["name"], **capacity)
        told = json.dumps({"status": capacity})
        kubectl.run("patch", "persistentvolumeclaim", claim["metadata"]["name"], "--subresource", "status", "--type", "merge", "-p", told)

    def fill(self, claim: Object, percent: int) -> None:
        """Something else takes the room of a volume, until that much of it is taken."""
        machine, path = _place(self._of(claim))
        size, used = f"$(df --output=size {path} | tail -1)", f"$(df --output=used {path} | tail -1)"
        self._on(machine, f"dd if=/dev/zero of={path}/something-else bs=1024 count=$(( {size} * {percent} / 100 - {used} )) status=none")

    def remove(self) -> None:
        """All of them, with the class. What used them must be gone."""
        own = [volume for volume in self.stack.kubectl.list("persistentvolumes") if volume["spec"].get("storageClassName") == CLASS]
        for volume in own:
            self.stack.kubectl.run("delete", "persistentvolume", volume["metadata"]["name"], "--wait=false")
        for machine in self._workers():
            self._on(machine, f"for each in {FOLDER}/*; do umount $each; rmdir $each; done")
        self.stack.kubectl.run("delete", "storageclass", CLASS)

    def _of(self, claim: Object) -> Object:
        found = self.stack.kubectl.get("persistentvolume", claim["spec"]["volumeName"])
        if found is None:
            raise KeyError(claim["metadata"]["name"])
        return found

    def _workers(self) -> list[str]:
        machines = self.stack.kubectl.list("nodes")
        return [each["metadata"]["name"] for each in machines if "node-role.kubernetes.io/control-plane" not in each["metadata"]["labels"]]

    def _on(self, machine: str, script: str) -> None:
        self.stack.sql.on_machine(machine, script)


def _place(volume: Object) -> tuple[str, str]:
    term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    return str(term["matchExpressions"][0]["values"][0]), str(volume["spec"]["local"]["path"])


def _volume(name: str, machine: str, path: str, mebibytes: int) -> Object:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [machine]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": f"{mebibytes}Mi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": CLASS,
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


_CLASS: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": CLASS},
    "provisioner": "herdkeeper.io/by-hand",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}
