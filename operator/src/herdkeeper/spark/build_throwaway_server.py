"""The HerdDB server that lives beside a restore drill, in the same pod, and goes with it.

It is a sidecar as Kubernetes knows them since 1.29: an init container that is restarted as long as the pod's own container runs, and
stopped then. It listens on the pod's loopback alone (images/herddb, ThrowawayServer), so no probe reaches it: the restore waits for it.
"""

from __future__ import annotations

from herdkeeper.api.restore_drill import DrillServer, DrillStorage
from herdkeeper.planning import pods as pod
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

SERVER = "herddb"
"""Name of its container."""
ADDRESS = f"127.0.0.1:{names.HERDDB_SQL_PORT}"
TABLESPACE = "herd"
"""The one that a new server has."""
USERNAME = "drill"
DATA = "/data"


def server_login() -> tuple[Json, ...]:
    """Who may log in, for the server and for whoever restores into it. The password is the pod's uid: nobody outside gets at the port."""
    return ({"name": "HERDDB_USERNAME", "value": USERNAME}, pod.field("HERDDB_PASSWORD", "metadata.uid"))


def server_container(server: DrillServer, image: str) -> Json:
    """The sidecar."""
    container = {
        "name": SERVER,
        "image": image,
        "args": ["throwaway", "--folder", DATA, "--port", str(names.HERDDB_SQL_PORT)],
        "env": list(server_login()),
        "resources": pod.compute(server.resources),
        "restartPolicy": "Always",
        "volumeMounts": [{"name": "data", "mountPath": DATA}],
    }
    return pod.secured(container)


def server_volume(storage: DrillStorage) -> Json:
    """Its data, which go with the pod."""
    if storage.storage_class_name is None:
        return {"name": "data", "emptyDir": {"sizeLimit": storage.size}}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage.size}},
        "storageClassName": storage.storage_class_name,
    }
    return {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
