"""Certificates of servers and clients, made by the machine's openssl, and the Secret of a HerdDBCluster's `spec.tls`."""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_e2e.cluster import run
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tls_probe import fingerprint

DAYS = "30"


@dataclass(frozen=True)
class Issued:
    """A certificate with its key and the authority that signed it, each in PEM."""

    certificate: str
    key: str
    authority: str

    @property
    def fingerprint(self) -> str:
        return fingerprint(ssl.PEM_cert_to_DER_cert(self.certificate))

    def secret(self, name: str) -> Object:
        """The manifest of the Secret, as cert-manager writes it."""
        files = {"tls.crt": self.certificate, "tls.key": self.key, "ca.crt": self.authority}
        data = {key: base64.b64encode(text.encode()).decode() for key, text in files.items()}
        return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": name}, "data": data}


class Authority:
    """Signs certificates. Its key is in `folder`, which must exist."""

    def __init__(self, folder: Path, name: str) -> None:
        self._key, self._certificate, self._folder = folder / "authority.key", folder / "authority.crt", folder
        purpose = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        files = ("-keyout", str(self._key), "-out", str(self._certificate))
        _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", DAYS, "-subj", f"/CN={name}", *purpose, *files)

    @property
    def certificate(self) -> str:
        """Its own certificate, in PEM, for clients to trust."""
        return self._certificate.read_text()

    def issue(self, hosts: Sequence[str], subject: str = "/CN=a SQL node", days: str = DAYS) -> Issued:
        """Returns a new certificate with a new key for these host names; `*.example.svc` covers a domain. One of -1 days has expired."""
        key, request, names, certificate = (self._folder / name for name in ("node.key", "node.request", "node.names", "node.crt"))
        names.write_text(f"subjectAltName={','.join(map(_alternative, hosts))}\n")
        _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", str(key), "-out", str(request))
        by = ("-CA", str(self._certificate), "-CAkey", str(self._key), "-CAcreateserial", "-CAserial", str(self._folder / "serial"))
        _openssl("x509", "-req", "-in", str(request), *by, "-days", days, "-extfile", str(names), "-out", str(certificate))
        return Issued(certificate.read_text(), key.read_text(), self.certificate)


def _alternative(host: str) -> str:
    return f"IP:{host}" if host.replace(".", "").isdigit() else f"DNS:{host}"


def _openssl(*arguments: str) -> None:
    run(["openssl", *arguments], os.environ, lambda _: None)
