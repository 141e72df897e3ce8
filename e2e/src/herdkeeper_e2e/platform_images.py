"""The images of the platform under test, as this machine's engine names them. Pods never import this: they have no repository."""

from __future__ import annotations

import os

from herdkeeper_e2e.release.source import Build, own_architecture

_ARCHITECTURE = os.environ.get("HERDKEEPER_PLATFORM", "").removeprefix("linux/") or own_architecture()
EMULATED = own_architecture() != _ARCHITECTURE
"""The images under test are another platform's (e2e/images/platform.sh): the kernel runs them by qemu, slowly."""


def in_engine(image: str) -> str:
    """The name by which this machine's engine has an image of the platform under test."""
    name, _, version = image.rpartition(":")
    return f"{name}:{Build(version, _ARCHITECTURE).tag}"
