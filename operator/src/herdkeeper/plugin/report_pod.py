"""A pod that writes one file of a volume to its log, and ends. Pure."""

from __future__ import annotations

from herdkeeper.shared.objects import Json

COPIED = ("securityContext", "nodeSelector", "tolerations", "imagePullSecrets", "affinity")
"""Settings copied from the pods of the Job that wrote the file, so that this pod can run in the same places."""

LONGEST_SECONDS = 600
"""The pod ends after that, even if forgotten."""


def report_pod(name: str, job: Json, claim: str, path: str) -> Json | None:
    """Returns the pod. None if no container of the Job mounts the claim. `path` is below the volume's root."""
    spec = job["spec"]["template"]["spec"]
    volume = next((each["name"] for each in spec.get("volumes") or [] if claim_of(each) == claim), None)
    found = (
        (container, mount)
        for container in spec["containers"]
        for mount in container.get("volumeMounts") or []
        if volume is not None and mount["name"] == volume
    )
    container, mount = next(found, (None, None))
    if container is None or mount is None:
        return None
    reader = {
        "name": "reader",
        "image": container["image"],
        "command": ["cat", f"{mount['mountPath'].rstrip('/')}/{path}"],
        "volumeMounts": [{**mount, "readOnly": True}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "32Mi"}},
        **{field: container[field] for field in ("securityContext", "imagePullPolicy") if field in container},
    }
    copied = {field: spec[field] for field in COPIED if field in spec}
    volumes = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}}]
    pod = {
        **copied,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": LONGEST_SECONDS,
        "automountServiceAccountToken": False,
        "containers": [reader],
        "volumes": volumes,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod}


def claim_of(volume: Json) -> str | None:
    """Returns the claim of a pod's volume, or None."""
    return (volume.get("persistentVolumeClaim") or {}).get("claimName")
