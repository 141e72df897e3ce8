"""The packages in a file system, from Debian's list, the metadata of Python's packages, and the pom.properties that Maven puts into jars,
including shaded ones. Jars that Maven brought are recognized by their bytes."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import Parser
from enum import StrEnum
from pathlib import PurePosixPath

DEBIAN_STATUS = "var/lib/dpkg/status"
_MAVEN = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d.*)\.jar")


class Origin(StrEnum):
    """Whose name it is. FILE: a jar that says nothing of itself, named as its file is."""

    DEBIAN = "deb"
    PYTHON = "pypi"
    MAVEN = "maven"
    FILE = "generic"


@dataclass(frozen=True, order=True)
class Package:
    """One of them. `group` is Maven's, `architecture` and `source` Debian's; empty for others. `source` is the source package, by which
    advisories name it: `glibc@2.36-9`."""

    origin: Origin
    name: str
    version: str
    group: str = ""
    architecture: str = ""
    source: str = ""


@dataclass(frozen=True, order=True)
class Found:
    """A package with the files that say so, and the SHA-1 of the jars that it is: Maven Central finds a jar by it."""

    package: Package
    places: tuple[str, ...]
    sha1: tuple[str, ...] = ()


@dataclass
class _Places:
    files: set[str] = field(default_factory=set)
    sha1: set[str] = field(default_factory=set)


def tells_of_packages(path: str) -> bool:
    """Whether `packages` reads this file."""
    return path == DEBIAN_STATUS or path.endswith((".dist-info/METADATA", ".jar"))


def packages(files: Iterable[tuple[str, bytes]], known: Mapping[str, Package] | None = None) -> tuple[Found, ...]:
    """What these files tell, each package once. Paths are relative to the root. `known` names jars by their SHA-256."""
    found: dict[Package, _Places] = defaultdict(_Places)
    for path, content in files:
        for package, sha1 in _told(path, content, known or {}):
            found[package].files.add(f"/{path}")
            if sha1:
                found[package].sha1.add(sha1)
    return tuple(sorted(Found(package, tuple(sorted(at.files)), tuple(sorted(at.sha1))) for package, at in found.items()))


def maven_jars(lines: str) -> dict[str, Package]:
    """Jars by their SHA-256, of lines as sha256sum prints them for files in the layout of a Maven repository."""
    named = {}
    for line in lines.splitlines():
        sha256, _, path = line.partition("  ")
        *group, artifact, version, _ = path.split("/")
        named[sha256] = Package(Origin.MAVEN, artifact, version, ".".join(group))
    return named


def _told(path: str, content: bytes, known: Mapping[str, Package]) -> Iterator[tuple[Package, str]]:
    if path == DEBIAN_STATUS:
        yield from ((package, "") for package in debian_packages(content.decode()))
    elif path.endswith(".dist-info/METADATA"):
        yield python_package(content.decode()), ""
    elif path.endswith(".jar"):
        yield from _of_jar(PurePosixPath(path).name, content, known)


def debian_packages(status: str) -> Iterator[Package]:
    """The installed ones of dpkg's status file. Source: dpkg(1), deb-control(5)."""
    for paragraph in status.split("\n\n"):
        fields = Parser().parsestr(paragraph, headersonly=True)
        if fields["Status"] == "install ok installed":
            source, _, version = (fields["Source"] or fields["Package"]).partition(" ")
            made_from = f"{source}@{version.strip('()') or fields['Version']}"
            yield Package(Origin.DEBIAN, fields["Package"], fields["Version"], architecture=fields["Architecture"], source=made_from)


def python_package(metadata: str) -> Package:
    """Source: core metadata specifications of the Python Packaging Authority; names are compared as PEP 503 says."""
    fields = Parser().parsestr(metadata, headersonly=True)
    return Package(Origin.PYTHON, re.sub(r"[-_.]+", "-", fields["Name"]).lower(), fields["Version"])


def _of_jar(file: str, content: bytes, known: Mapping[str, Package]) -> Iterator[tuple[Package, str]]:
    """The jar itself, by its bytes, its pom.properties or else its file's name, and those it has taken in."""
    sha1 = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    named_by_bytes = known.get(hashlib.sha256(content).hexdigest())
    itself = named_by_bytes is not None
    if named_by_bytes is not None:
        yield named_by_bytes, sha1
    with zipfile.ZipFile(io.BytesIO(content)) as jar:
        for entry in jar.namelist():
            if _MAVEN.fullmatch(entry):
                package = maven_package(jar.read(entry).decode())
                is_it = file.startswith(f"{package.name}-{package.version}")
                itself = itself or is_it
                yield package, sha1 if is_it else ""
    if not itself:
        named = _JAR.fullmatch(file)
        yield Package(Origin.FILE, named["name"] if named else file, named["version"] if named else ""), sha1


def maven_package(properties: str) -> Package:
    """Source: Maven Archiver, `addMavenDescriptor`."""
    lines = (line.partition("=") for line in properties.splitlines() if not line.startswith("#"))
    values = {name.strip(): value.strip() for name, _, value in lines}
    return Package(Origin.MAVEN, values["artifactId"], values["version"], values["groupId"])
