"""`kubectl herdkeeper report`: the report of a Checkpoint or ReplicationAudit, in a browser."""

from __future__ import annotations

import secrets
import tempfile
import webbrowser
from pathlib import Path

from herdkeeper.plugin.cluster import ClusterError
from herdkeeper.plugin.command import FINE, Answer, Argument, BadInputError, Call, Command, find_any, new_file, write_new
from herdkeeper.plugin.kinds import AUDIT, CHECKPOINT, JOB, POD
from herdkeeper.plugin.request import Outcome, timeout_seconds, wait_until
from herdkeeper.plugin.signals import ending_like_ctrl_c
from herdkeeper.shared.objects import Json, pod_trouble

KINDS = (CHECKPOINT, AUDIT)
OPENED = "report.html"
"""By another ending the system would run the file. The status, which has the report's name, may be anybody's."""
LOADS_NOTHING = """<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""
"""Before the report, so that a browser runs no script in it: whoever can write to the volume can put one there."""
COPIED = ("securityContext", "nodeSelector", "tolerations", "imagePullSecrets", "affinity")
"""Settings copied from the pods of the Job that wrote the file, so that this pod can run in the same places."""

LONGEST_SECONDS = 600
"""The pod ends after that, even if forgotten."""


def run(call: Call) -> Answer:
    """Fetch the report through a temporary pod, and open it."""
    seconds = timeout_seconds(call)
    kind, item = find_any(call.cluster, call.given.run, "RUN", KINDS)
    if kind not in KINDS:
        raise BadInputError(f"RUN {call.given.run}: a {kind.name} has no report; name a {KINDS[0].name} or {KINDS[1].name}")
    claim, path = place_of(item, call.given.run)
    target = new_file(call.given.file) if call.given.file is not None else None
    job = call.cluster.get(JOB, str(item["status"].get("job")))
    pod = report_pod(f"report-{secrets.token_hex(4)}", job, claim, path) if job is not None else None
    if pod is None:
        raise ClusterError(f"the Job of {call.given.run} is gone, so its image is unknown: use a newer run, or copy {path} from {claim}")
    if call.given.dry_run:
        call.cluster.create(POD, pod, dry_run=True)
        return Answer(f"Pod/{pod['metadata']['name']}: it would read {path} (dry run, nothing changed)", {"dryRun": True, "pod": pod})
    written = target or _temporary_folder() / OPENED
    with ending_like_ctrl_c():
        call.cluster.create(POD, pod, dry_run=False)
        text = fetched(call, str(pod["metadata"]["name"]), seconds)
    write_new(written, (LOADS_NOTHING + text).encode())
    opened = target is None and webbrowser.open(written.resolve().as_uri())
    return Answer(f"{written}{' was opened in the browser' if opened else ''}", {"file": str(written), "opened": opened}, FINE)


def _temporary_folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="herdkeeper-"))
    except OSError as error:
        raise BadInputError(f"there is no folder for temporary files ({error.strerror}); name a file with --file") from error


def place_of(run: Json, written: str) -> tuple[str, str]:
    """Returns the claim and the report's path on it. Raises ClusterError if there is no report, or it is not on a volume."""
    path = (run.get("status") or {}).get("report")
    destination = run["spec"].get("destination") or {}
    if not path:
        said = (run.get("status") or {}).get("message") or "it has not ended"
        raise ClusterError(f"{written} has no report: {said}" if destination else f"{written} has no destination, so no report is written")
    claim = (destination.get("persistentVolumeClaim") or {}).get("claimName")
    if claim is None:
        place = (destination.get("objectStore") or {}).get("uri")
        raise ClusterError(f"the report of {written} is not on a volume: fetch {place}/{path} with a client of that store")
    return str(claim), str(path)


def fetched(call: Call, pod: str, seconds: int) -> str:
    """Returns the pod's output. Raises ClusterError, with the reason, if it did not finish. The pod is always deleted."""
    try:
        outcome = wait_until(call, POD, pod, ended, seconds)
        if outcome.good:
            return "\n".join(call.cluster.lines(POD, pod, "log", []))
        last = call.cluster.get(POD, pod)
        raise ClusterError(f"the report could not be read: {outcome.sentence}; {pod_trouble(last)}")
    finally:
        call.cluster.delete(POD, pod)


def ended(pod: Json) -> Outcome | None:
    phase = (pod.get("status") or {}).get("phase")
    return Outcome(f"its pod {phase}", good=phase == "Succeeded") if phase in ("Succeeded", "Failed") else None


def report_pod(name: str, job: Json, claim: str, path: str) -> Json | None:
    """Returns a pod that writes a file below the volume's root to its log, and ends. None if no container of the Job mounts the claim."""
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
    return (volume.get("persistentVolumeClaim") or {}).get("claimName")


COMMAND = Command(
    "report",
    "opens the report of a Checkpoint or ReplicationAudit in a browser",
    run,
    (
        Argument("run", "a Checkpoint or ReplicationAudit as KIND/NAME, e.g. ckpt/flights-1", kinds=KINDS),
        Argument("--file", "write the report to this file instead of opening it"),
        Argument("--timeout", "seconds to wait for the pod that reads it", default="120"),
    ),
    description="A temporary pod reads the file, with the image and the rights of the run's Job. Reports in object stores are not "
    "fetched: the message names the address.",
    writes=True,
)
