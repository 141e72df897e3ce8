"""Why a pod is not Ready, in one line: what its container said last, and what to raise where it ran out of memory."""

from __future__ import annotations

import re

import pytest

from herdkeeper.shared import names
from herdkeeper.shared.objects import MAX_MESSAGE_LENGTH, Json, pod_trouble

LOST_CONFIG = """2026-01-01 12:00:00 INFO  starting
org.apache.commons.configuration2.ex.ConversionException: 'numAddWorkerThreads' doesn't map to an Integer object: abc
\tat org.apache.commons.configuration2.AbstractConfiguration.convert(AbstractConfiguration.java:1)
\t... 7 more
2026-01-01 12:00:01 INFO  the server is shut down
"""
IN_JSON = """,\"message\":\"the log's tail begins here\"}
{"time":"2026-01-01T12:00:00Z","message":"it can't start","exception":"java.io.IOException: No snapshot found\\n\\tat org.x.Y(Y.java:1)\\n"}
{"time":"2026-01-01T12:00:01Z","message":"the server is shut down"}
"""
HEAP = "2026-01-01 12:00:00 INFO checkpoint\nTerminating due to java.lang.OutOfMemoryError: Java heap space\n"


def pod(state: Json, last: Json | None = None, component: str = names.HERDDB_COMPONENT) -> Json:
    container = {"name": "server", "ready": False, "state": state, **({} if last is None else {"lastState": {"terminated": last}})}
    return {"metadata": {"name": "a", "labels": {names.COMPONENT_LABEL: component}}, "status": {"containerStatuses": [container]}}


def unstated(last: Json) -> Json:
    container = {"name": "server", "ready": False, "lastState": {"terminated": last}}
    return {"metadata": {"name": "a"}, "status": {"containerStatuses": [container]}}


EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
WAITS = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=server pod=a_demo(uid)"}}
RUNS = {"running": {"startedAt": "2026-01-01T12:00:00Z"}}


@pytest.mark.parametrize(
    ("situation", "found", "told"),
    [
        ("it starts for the first time", pod(RUNS), "starting"),
        ("its image can't be had", pod({"waiting": {"reason": "ErrImagePull", "message": "no such image"}}), "ErrImagePull no such image"),
        (
            "it fails again and again: the last failure, without frames and without what was said after it",
            pod(WAITS, {"exitCode": 1, "reason": "Error", "message": LOST_CONFIG}),
            "CrashLoopBackOff; it ended with exit code 1: org.apache.commons.configuration2.ex.ConversionException: 'numAddWorkerThreads' "
            "doesn't map to an Integer object: abc",
        ),
        (
            "its log is in JSON: the message and the exception, without frames",
            pod(WAITS, {"exitCode": 1, "reason": "Error", "message": IN_JSON}),
            "CrashLoopBackOff; it ended with exit code 1: java.io.IOException: No snapshot found",
        ),
        (
            "it has just ended",
            pod({"terminated": {"exitCode": 2, "reason": "Error", "message": "no such option\n"}}),
            "it ended with exit code 2: no such option",
        ),
        ("it said nothing", pod(RUNS, {"exitCode": 143, "reason": "Error"}), "starting; it ended with exit code 143"),
        (
            "only its last end is told",
            unstated({"exitCode": 2, "reason": "Error", "message": "no"}),
            "starting; it ended with exit code 2: no",
        ),
        ("it ended as it should", pod(RUNS, {"exitCode": 0, "reason": "Completed"}), "starting"),
        (
            "Java ran out of memory",
            pod(RUNS, {"exitCode": 3, "reason": "Error", "message": HEAP}),
            "starting; it ran out of memory (Java heap space): raise spec.resources.memory",
        ),
        (
            "the kernel ended it",
            pod(WAITS, {"exitCode": 137, "reason": "OOMKilled"}),
            "CrashLoopBackOff; it ran out of memory (OOMKilled): raise spec.resources.memory",
        ),
        ("its node evicted it", {"metadata": {"name": "a"}, "status": EVICTED}, "Evicted: The node was low on resource: memory."),
        (
            "the kernel ended autorecovery",
            pod(RUNS, {"exitCode": 137, "reason": "OOMKilled"}, names.AUTORECOVERY_COMPONENT),
            "starting; it ran out of memory (OOMKilled): raise spec.autoRecovery.resources.memory",
        ),
        (
            "the kernel ended an archiver",
            pod(RUNS, {"exitCode": 137, "reason": "OOMKilled"}, names.ARCHIVE_COMPONENT),
            "starting; it ran out of memory (OOMKilled): raise spec.log.archive.resources.memory",
        ),
    ],
)
def test_a_container_s_last_words_say_why_its_pod_is_not_ready(situation, found, told):
    assert pod_trouble(found) == told, situation


def test_last_words_are_cut_to_one_short_line():
    said = pod_trouble(pod(WAITS, {"exitCode": 1, "reason": "Error", "message": f"Error: {'x' * 5000}\n"}))
    assert len(said) <= 300
    assert "\n" not in said


@pytest.mark.parametrize(
    ("message", "told"),
    [('{"a":' + "[" * 4000, "exit code 1"), ('{"message": "no space left", "exception": null}', "no space left")],
    ids=["nested deeply", "without an exception"],
)
def test_last_words_that_look_like_json_stop_nothing_whatever_they_are(message: str, told: str) -> None:
    assert told in pod_trouble(pod(WAITS, {"exitCode": 1, "message": message}))


@pytest.mark.parametrize(
    "found",
    [
        pod({"waiting": {"reason": "ErrImagePull", "message": "failed to pull the image " * 30}}),
        pod({"terminated": {"exitCode": 1, "message": "it can't read what it was given " * 30}}),
        {
            "metadata": {"name": "a"},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available " * 30}]},
        },
    ],
)
def test_a_long_message_ends_with_a_whole_word_and_shows_that_it_goes_on(found: Json) -> None:
    told = pod_trouble(found)
    assert told.endswith(" …")
    assert len(told) <= MAX_MESSAGE_LENGTH
    assert re.search(r" (failed|to|pull|the|image|it|can't|read|what|was|given|0/3|nodes|are|available) …$", told)
