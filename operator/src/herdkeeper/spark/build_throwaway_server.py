"""The temporary HerdDB server of a restore drill, in the same pod.

It is a Kubernetes sidecar (since 1.29): an init container that is restarted while the pod's main container runs, and stopped then. It
listens only on the pod's loopback (images/herddb, ThrowawayServer), so no probe reaches it: the restore waits for it.
"""

from __future__ import annotations

from herdkeeper.api.restore_drill import DrillServer, DrillStorage
from herdkeeper.planning import pods as pod
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

SERVER = "herddb"
"""Name of the container."""
ADDRESS = f"127.0.0.1:{names.HERDDB_SQL_PORT}"
TABLESPACE = "herd"
"""The tablespace of a new server."""
USERNAME = "drill"
DATA = "/data"


def server_login() -> tuple[Json, ...]:
    """Returns the login, for the server and the restore. The password is the pod's uid: the port is not reachable from outside."""
    return ({"name": "HERDDB_USERNAME", "value": USERNAME}, pod.field("HERDDB_PASSWORD", "metadata.uid"))


def server_container(server: DrillServer, image: str) -> Json:
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
    """Returns the volume with its data, which is deleted with the pod."""
    if storage.storage_class_name is None:
        return {"name": "data", "emptyDir": {"sizeLimit": storage.size}}
    return {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": pod.claim_spec(storage)}}}
