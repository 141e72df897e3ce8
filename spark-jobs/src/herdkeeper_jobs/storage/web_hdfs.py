"""fsspec's WebHDFS, with what a job can't do without: an end to each wait, and errors of DataNodes as errors.

fsspec sets no time limits, and gives what a DataNode answers for the content of a file, whatever its status is.
"""

from __future__ import annotations

from typing import Any

import requests
from fsspec.implementations.webhdfs import WebHDFile, WebHDFS
from requests.adapters import HTTPAdapter
from urllib3 import Retry

_CONNECTED_WITHIN, _ANSWERED_WITHIN, _TRIES = 30.0, 120.0, 5
_CONNECTIONS = 16
"""As many files as are asked for at a time."""


class PatientWebHdfs(WebHDFS):  # type: ignore[misc]
    """Waits for an answer, but not for ever, asks again for what only reads, and reads no more of a file than it is asked for."""

    def _connect(self) -> None:
        super()._connect()
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, _Patient())

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **_: Any) -> WebHDFile:
        size = block_size or self.blocksize
        return _CheckedFile(self, path, mode=mode, block_size=size, tempdir=self.tempdir, autocommit=True, cache_type="none")


class _CheckedFile(WebHDFile):  # type: ignore[misc]
    def _fetch_range(self, start: int, end: int) -> bytes:
        first, last = max(start, 0), min(end, self.size)
        if first >= last:
            return b""
        answer = self.fs._call("OPEN", path=self.path, offset=first, length=last - first, redirect=False)
        if "Location" in answer.headers:
            answer = self.fs.session.get(self.fs._apply_proxy(answer.headers["Location"]))
            answer.raise_for_status()
        return bytes(answer.content)


class _Patient(HTTPAdapter):
    def __init__(self) -> None:
        asks_again = Retry(total=_TRIES, backoff_factor=0.5, allowed_methods={"GET"}, status_forcelist={503}, raise_on_status=False)
        super().__init__(pool_maxsize=_CONNECTIONS, max_retries=asks_again)

    def send(self, request: requests.PreparedRequest, *given: Any, **more: Any) -> requests.Response:
        more["timeout"] = more.get("timeout") or (_CONNECTED_WITHIN, _ANSWERED_WITHIN)
        return super().send(request, *given, **more)
