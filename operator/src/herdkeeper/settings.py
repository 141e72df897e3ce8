"""The operator's settings, from environment variables HERDKEEPER_*. The chart's values.yaml describes each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from herdkeeper.api.default_images import SHIPPED_IMAGES, DefaultImages
from herdkeeper.shared import names

LOG_LEVELS = ("debug", "info", "warning", "error")
POD_IDS = ("Auto", "Fixed", "Assigned")


class SettingsError(ValueError):
    """An environment variable is invalid. The message names it, its value and the fix."""


@dataclass(frozen=True)
class Settings:
    """`watch_namespaces` empty: all of them. `pod_ids`: whether the platform assigns users and groups to the pods of servers and jobs.
    `namespace` and `identity` are for the Lease that elects the active replica.
    """

    watch_namespaces: tuple[str, ...] = ()
    images: DefaultImages = SHIPPED_IMAGES
    pod_ids: str = "Auto"
    driver_role: str = names.DRIVER_ROLE
    resync_seconds: float = 600.0
    log_level: str = "info"
    namespace: str = "herdkeeper-system"
    identity: str = "herdkeeper"
    http_port: int = 8080

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
        """Settings with the defaults of this class. Raises SettingsError."""
        read = Settings()
        # each from its variable, e.g. HERDKEEPER_SPARK_IMAGE
        images = {name: environment.get(f"HERDKEEPER_{name.upper()}_IMAGE") or image for name, image in asdict(read.images).items()}
        return Settings(
            watch_namespaces=tuple(name.strip() for name in environment.get("HERDKEEPER_WATCH_NAMESPACES", "").split(",") if name.strip()),
            images=DefaultImages(**images),
            pod_ids=_one_of(POD_IDS, environment, "HERDKEEPER_POD_IDS", read.pod_ids),
            driver_role=environment.get("HERDKEEPER_DRIVER_ROLE") or read.driver_role,
            resync_seconds=_positive(environment, "HERDKEEPER_RESYNC_SECONDS", read.resync_seconds),
            log_level=_one_of(LOG_LEVELS, environment, "HERDKEEPER_LOG_LEVEL", read.log_level),
            namespace=environment.get("HERDKEEPER_POD_NAMESPACE") or read.namespace,
            identity=environment.get("HERDKEEPER_POD_NAME") or read.identity,
            http_port=int(_positive(environment, "HERDKEEPER_HTTP_PORT", read.http_port)),
        )


def _one_of(values: tuple[str, ...], environment: Mapping[str, str], name: str, default: str) -> str:
    value = environment.get(name) or default
    if value not in values:
        raise SettingsError(f"{name} is {value!r}: set one of {', '.join(values)}")
    return value


def _positive(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise SettingsError(f"{name} is {text!r}: set a number greater than 0")
    return value
