"""`kubectl herdkeeper report`: the report of a Checkpoint or ReplicationAudit, in a browser."""

from __future__ import annotations

import secrets
import tempfile
import webbrowser
from pathlib import Path

from herdkeeper.plugin.cluster import ClusterError
from herdkeeper.plugin.command import FINE, WRONG, Answer, Argument, BadInputError, Call, Command
from herdkeeper.plugin.kinds import AUDIT, CHECKPOINT, JOB, POD
from herdkeeper.plugin.lookup import find_any
from herdkeeper.plugin.report_pod import report_pod
from herdkeeper.plugin.request import Outcome, timeout_seconds, wait_until
from herdkeeper.shared.objects import Json, pod_trouble

KINDS = (CHECKPOINT, AUDIT)


def run(call: Call) -> Answer:
    """Fetches the report by a pod of its own, which is gone afterwards, and opens it."""
    seconds = timeout_seconds(call)
    kind, item = find_any(call.cluster, call.given.run, "RUN")
    if kind not in KINDS:
        raise BadInputError(f"RUN {call.given.run}: a {kind.name} has no report; name a {KINDS[0].name} or {KINDS[1].name}")
    claim, path = place_of(item, call.given.run)
    target = Path(call.given.file) if call.given.file is not None else None
    if target is not None and target.exists():
        raise BadInputError(f"--file {target}: there is such a file; name another")
    job = call.cluster.get(JOB, str(item["status"].get("job")))
    pod = report_pod(f"report-{secrets.token_hex(4)}", job, claim, path) if job is not None else None
    if pod is None:
        raise ClusterError(f"the Job of {call.given.run} is gone, so its image is not known: take a newer run, or copy {path} off {claim}")
    call.cluster.create(POD, pod, dry_run=call.given.dry_run)
    if call.given.dry_run:
        return Answer(f"Pod/{pod['metadata']['name']}: it would read {path} (dry run: nothing is changed)", {"dryRun": True, "pod": pod})
    text = fetched(call, str(pod["metadata"]["name"]), seconds)
    if text is None:
        return Answer("", {}, WRONG)
    written = target or Path(tempfile.mkdtemp(prefix="herdkeeper-")) / Path(path).name
    written.write_text(text, encoding="utf-8")
    opened = target is None and webbrowser.open(written.resolve().as_uri())
    return Answer(f"{written}{' is opened in the browser' if opened else ''}", {"file": str(written), "opened": opened}, FINE)


def place_of(run: Json, written: str) -> tuple[str, str]:
    """The claim, and the report's path on its volume. ClusterError where the run has no report, or one that is on no volume."""
    path = (run.get("status") or {}).get("report")
    destination = run["spec"].get("destination") or {}
    if not path:
        said = (run.get("status") or {}).get("message") or "it has not ended"
        raise ClusterError(f"{written} has no report: {said}" if destination else f"{written} has no destination, so no report is written")
    claim = (destination.get("persistentVolumeClaim") or {}).get("claimName")
    if claim is None:
        place = (destination.get("objectStore") or {}).get("uri")
        raise ClusterError(f"the report of {written} is no file of a volume: fetch {place}/{path} with that store's own client")
    return str(claim), str(path)


def fetched(call: Call, pod: str, seconds: int) -> str | None:
    """What the pod wrote; None, with the reason on the screen, where it did not come to its end. The pod is gone in any case."""
    try:
        outcome = wait_until(call, POD, pod, ended, seconds)
        if outcome.good:
            return "\n".join(call.cluster.lines(POD, pod, "log", []))
        last = call.cluster.get(POD, pod)
        call.screen.write(f"the report could not be read: {outcome.sentence}; {pod_trouble(last)}")
        return None
    finally:
        call.cluster.delete(POD, pod)


def ended(pod: Json) -> Outcome | None:
    """How a pod ended; None while it has not."""
    phase = (pod.get("status") or {}).get("phase")
    return Outcome(f"its pod {phase}", good=phase == "Succeeded") if phase in ("Succeeded", "Failed") else None


COMMAND = Command(
    "report",
    "opens the report of a Checkpoint or ReplicationAudit in a browser",
    run,
    (
        Argument("run", "a Checkpoint or ReplicationAudit as KIND/NAME, e.g. ckpt/flights-1"),
        Argument("--file", "write it to this file instead, and open nothing"),
        Argument("--timeout", "how many seconds to wait for the pod that reads it", default="120"),
    ),
    description="A pod of its own reads the file, with the image and the rights of the run's Job, and is deleted afterwards. Reports in "
    "object stores are not fetched: the message names the address.",
    writes=True,
)
