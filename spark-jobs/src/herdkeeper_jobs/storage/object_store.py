"""Opens object stores: S3 and stores with its protocol, Google Cloud Storage, and Azure Blob Storage.

The process's variables configure them: obstore's own names behind a prefix of ours. A job may open two stores, and obstore would read
variables without a prefix for both. Without keys obstore uses the pod's identity in the cloud (workload identity), by variables and
addresses that the cloud puts into the pod.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from herdkeeper.shared import names

Store = S3Store | GCSStore | AzureStore
_STORES: Mapping[str, type[Store]] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
_FURTHER = {"s3": (names.REGION_VARIABLE,), "gs": (), "az": (names.STORAGE_ACCOUNT_VARIABLE,)}
_BY = {
    "s3": "`AWS_ROLE_ARN` and `AWS_WEB_IDENTITY_TOKEN_FILE`, or the machine's metadata",
    "gs": "the metadata server",
    "az": "`AZURE_CLIENT_ID`, `AZURE_TENANT_ID` and `AZURE_FEDERATED_TOKEN_FILE`, or the machine's metadata",
}
_MARKUP = re.compile(r"<\?xml|<Error")
_RETRIED_FOR = timedelta(seconds=60)
_ANSWERED_WITHIN = timedelta(seconds=120)


class StoreNotConfiguredError(ValueError):
    """A store can't be opened with these settings; the message names the reason and the fix."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How a store is opened. `config` are obstore's variables with their values; `authorities` are certificates (PEM) to trust besides."""

    scheme: str
    config: Mapping[str, str] = field(repr=False)
    authorities: str | None = None

    @staticmethod
    def of(scheme: str, environment: Mapping[str, str], prefix: str = "") -> StoreSettings:
        """From a process's variables, whose names begin with `prefix`. Raises StoreNotConfiguredError if a key is empty: obstore would use
        the pod's identity in the cloud instead, or the machine's, which is not the author's.
        """
        if empty := [key for key in names.STORE_KEYS[scheme] if environment.get(f"{prefix}{key}") == ""]:
            raise StoreNotConfiguredError(f"the Secret with the store's credentials has an empty {' and '.join(empty)}: fill it in")
        known = (*names.STORE_KEYS[scheme], names.STORE_ENDPOINTS[scheme], *_FURTHER[scheme])
        config = {name: value for name in known if (value := environment.get(f"{prefix}{name}"))}
        return StoreSettings(scheme, config, environment.get(f"{prefix}{names.STORE_AUTHORITIES_VARIABLE}") or None)

    @property
    def credentials(self) -> str:
        """How to correct the credentials, for people."""
        keys = names.STORE_KEYS[self.scheme]
        if any(key in self.config for key in keys):
            return "correct the keys in the Secret, or their permissions in the bucket"
        return f"correct the ServiceAccount's identity (obstore takes it by {_BY[self.scheme]}), or its permissions in the bucket"

    def open(self, bucket: str) -> Store:
        """Opens a bucket without a request to it. Raises StoreNotConfiguredError."""
        endpoint = self.config.get(names.STORE_ENDPOINTS[self.scheme], "")
        try:
            return _STORES[self.scheme](
                bucket,
                config=dict(self.config),  # type: ignore[arg-type]
                client_options={
                    "allow_http": endpoint.startswith("http://"),
                    "timeout": _ANSWERED_WITHIN,
                    **({"root_certificate": self.authorities} if self.authorities else {}),
                },
                retry_config={"max_retries": 5, "retry_timeout": _RETRIED_FOR},
            )
        except (BaseError, ValueError) as error:
            raise StoreNotConfiguredError(
                f"{self.scheme}://{bucket} can't be opened: {line_of(error)}; correct its Secret or fields"
            ) from None


@lru_cache(maxsize=8)
def opened(scheme: str, bucket: str, variables: str, process: int) -> Store:
    """One per process: a fork does not inherit the threads that answer. Raises StoreNotConfiguredError."""
    del process
    return StoreSettings.of(scheme, os.environ, variables).open(bucket)


def line_of(error: Exception) -> str:
    """Returns an error in one line: of the store's answer only status, code and message. Some stores repeat keys and signatures in it."""
    text = str(error).split("\n\nDebug source:")[0]
    said = ": ".join(found.group(1) for name in ("Code", "Message") if (found := re.search(f"<{name}>([^<]*)</{name}>", text)))
    text = text[max(0, text.find("Server returned")) :] if said else text
    return " ".join(f"{_MARKUP.split(text)[0]} {said}".split())[:500]


def why_unreachable(error: Exception) -> str:
    """Returns what to look at if the store gave no answer, else nothing. obstore keeps the cause, such as a certificate, to itself."""
    if "error sending request" not in str(error):
        return ""
    return "the object store does not answer at its endpoint, or its certificate is not trusted (endpoint, caSecretRef): "
