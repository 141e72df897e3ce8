"""Images that this checkout builds, of which scenarios start pods of their own."""

import os

from herdkeeper.api.default_images import SHIPPED_IMAGES, VERSION
from herdkeeper_e2e.release.source import Build, own_architecture

OPERATOR = f"herdkeeper/operator:{VERSION}"
ZOOKEEPER = SHIPPED_IMAGES.zookeeper
BOOKKEEPER = SHIPPED_IMAGES.bookkeeper
HERDDB = SHIPPED_IMAGES.herddb
SPARK = SHIPPED_IMAGES.spark

_ARCHITECTURE = os.environ.get("HERDKEEPER_PLATFORM", "").removeprefix("linux/") or own_architecture()
EMULATED = own_architecture() != _ARCHITECTURE
"""The images under test are another platform's (e2e/images/platform.sh): the kernel runs them by qemu, slowly."""


def in_engine(image: str) -> str:
    """The name by which this machine's engine has an image of the platform under test."""
    name, _, version = image.rpartition(":")
    return f"{name}:{Build(version, _ARCHITECTURE).tag}"
