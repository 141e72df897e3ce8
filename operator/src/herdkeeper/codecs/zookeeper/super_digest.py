"""ZooKeeper's superDigest: what a server knows of the one user that may do everything, reconfig included.

`super:<base64 of SHA-1 of "super:<password>">`. A client authenticates with the scheme `digest` and `super:<password>`.
Source: DigestAuthenticationProvider of ZooKeeper 3.9.5 with its default algorithm.
"""

from __future__ import annotations

import base64
import hashlib

SUPER = "super"
"""Name of the user."""


def super_digest(password: str) -> str:
    """What servers are given: the password can't be computed from it, if it is random and long."""
    hashed = hashlib.sha1(f"{SUPER}:{password}".encode()).digest()  # noqa: S324 - ZooKeeper's choice; the password has 256 random bits
    return f"{SUPER}:{base64.b64encode(hashed).decode()}"


def super_credential(password: str) -> str:
    """What a client authenticates with."""
    return f"{SUPER}:{password}"
