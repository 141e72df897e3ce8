"""ZooKeeper's superDigest, by which servers verify the super user, who may do everything including reconfig.

`super:<base64 of SHA-1 of "super:<password>">`. A client authenticates with the scheme `digest` and `super:<password>`. Source:
DigestAuthenticationProvider of ZooKeeper 3.9.5 with its default algorithm.
"""

from __future__ import annotations

import base64
import hashlib

SUPER = "super"
"""Name of the user."""


def super_digest(password: str) -> str:
    """Returns the digest for servers. A long random password can't be computed from it."""
    hashed = hashlib.sha1(f"{SUPER}:{password}".encode()).digest()  # noqa: S324 - ZooKeeper's choice; the password has 256 random bits
    return f"{SUPER}:{base64.b64encode(hashed).decode()}"


def super_credential(password: str) -> str:
    """Returns a client's credential."""
    return f"{SUPER}:{password}"
