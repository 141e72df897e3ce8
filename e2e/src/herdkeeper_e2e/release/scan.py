"""Finds known vulnerabilities in the images: `python -m herdkeeper_e2e.release.scan 0.2.0` looks up the lists of dist/ at osv.dev.

Exit code 0: none, or only those that docs/known-vulnerabilities.md names; 1: others; 2: osv.dev did not answer, or a list is missing.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from packageurl import PackageURL

from herdkeeper.api.default_images import VERSION
from herdkeeper_e2e.release.source import IMAGES, REPOSITORY, Build, own_architecture

DATABASE = "https://api.osv.dev"
"""OSV: advisories of PyPI, Maven and Debian, and of many others. Source: https://google.github.io/osv.dev/api/."""
JUDGED = "docs/known-vulnerabilities.md"
_DEBIAN = {"debian-12": "Debian:12"}
_BATCH = 500
_PAGES = 20
_TIMEOUT = 30.0


class ScanError(Exception):
    """The database could not be asked, or there is nothing to ask it about; the message says why."""


@dataclass(frozen=True, order=True)
class Asked:
    """A package by the name that advisories have for it. Of Debian's packages that is the source package."""

    ecosystem: str
    name: str
    version: str


@dataclass(frozen=True)
class Contents:
    """What the lists of all images name: which images hold a package, and the jars of each image that nobody can be asked about."""

    holders: Mapping[Asked, frozenset[str]]
    nameless: Mapping[str, int]


@dataclass(frozen=True, order=True)
class Finding:
    """An advisory of a package. `names` has its other names, `fixed` the versions that are free of it; empty: there is none yet."""

    package: Asked
    advisory: str
    names: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()


def asked(url: str) -> Asked | None:
    """What a package URL is asked about by. None for one of a kind that no image holds."""
    purl = PackageURL.from_string(url)
    qualifiers = purl.qualifiers if isinstance(purl.qualifiers, dict) else {}
    match purl.type:
        case "pypi":
            return Asked("PyPI", purl.name, purl.version or "")
        case "maven":
            return Asked("Maven", f"{purl.namespace}:{purl.name}", purl.version or "")
        case "deb" if qualifiers.get("distro") in _DEBIAN:
            source, _, version = qualifiers.get("upstream", purl.name).partition("@")
            return Asked(_DEBIAN[qualifiers["distro"]], source, version or purl.version or "")
        case _:
            return None


def contents(documents: Mapping[str, str]) -> Contents:
    """Of CycloneDX documents, by the image that each is of."""
    holders: dict[Asked, set[str]] = defaultdict(set)
    nameless: dict[str, int] = defaultdict(int)
    for image, document in documents.items():
        for component in json.loads(document).get("components", []):
            package = asked(component["purl"]) if "purl" in component else None
            if package is None:
                nameless[image] += 1
            else:
                holders[package].add(image)
    return Contents({package: frozenset(images) for package, images in holders.items()}, dict(nameless))


_Question = tuple[Asked, str]
"""A package, and which page of the answer."""


class Osv:
    """A client of the database. ScanError when it does not answer, or not as it should."""

    def __init__(self, address: str = DATABASE) -> None:
        self._address = address

    def advisories(self, packages: Sequence[Asked]) -> dict[Asked, frozenset[str]]:
        """The names of the advisories of each package that has any."""
        told: dict[Asked, set[str]] = defaultdict(set)
        questions = [(package, "") for package in packages]
        for _ in range(_PAGES):
            questions = [further for batch in _batches(questions) for further in self._ask(batch, told)]
            if not questions:
                return {package: frozenset(names) for package, names in told.items()}
        raise ScanError(f"{self._address} has more than {_PAGES} pages of an answer")

    def _ask(self, questions: Sequence[_Question], told: dict[Asked, set[str]]) -> Iterator[_Question]:
        """Adds to what is told; gives the questions of which there is a further page."""
        answers = self._request("/v1/querybatch", {"queries": [_query(*question) for question in questions]}).get("results", [])
        if len(answers) != len(questions):
            raise ScanError(f"{self._address} gave {len(answers)} answers to {len(questions)} questions")
        for (package, _), answer in zip(questions, answers, strict=True):
            if answer.get("vulns"):
                told[package].update(each["id"] for each in answer["vulns"])
            if answer.get("next_page_token"):
                yield package, answer["next_page_token"]

    def finding(self, package: Asked, advisory: str) -> Finding | None:
        """An advisory in full. None for one that was withdrawn."""
        told = self._request(f"/v1/vulns/{advisory}")
        if told.get("withdrawn"):
            return None
        return Finding(package, advisory, tuple(sorted({*told.get("aliases", []), *told.get("upstream", [])})), _fixed(told, package))

    def _request(self, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                told = json.load(answer)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ScanError(f"{self._address}{path} could not be asked: {error}") from error
        if not isinstance(told, dict):
            raise ScanError(f"{self._address}{path} answered {type(told).__name__}, not an object")
        return told


def _batches(questions: Sequence[_Question]) -> Iterator[Sequence[_Question]]:
    return (questions[begin : begin + _BATCH] for begin in range(0, len(questions), _BATCH))


def _query(package: Asked, page: str) -> dict[str, object]:
    named: dict[str, object] = {"package": {"ecosystem": package.ecosystem, "name": package.name}, "version": package.version}
    return {**named, "page_token": page} if page else named


def _fixed(advisory: Mapping[str, Any], package: Asked) -> tuple[str, ...]:
    """The versions of this package in which the advisory ends. Source: the OSV schema, `affected[].ranges[].events[].fixed`."""
    of_package = (
        each
        for each in advisory.get("affected", [])
        if (each.get("package", {}).get("ecosystem"), each.get("package", {}).get("name")) == (package.ecosystem, package.name)
    )
    events = (event for each in of_package for span in each.get("ranges", []) for event in span.get("events", []))
    return tuple(sorted({event["fixed"] for event in events if "fixed" in event}))


def judged(page: str) -> frozenset[str]:
    """The advisories that a page names in the first column of its tables: somebody has looked at them, and says why they may stay."""
    rows = re.findall(r"^\|([^|]*)\|", page, re.MULTILINE)
    return frozenset(name for row in rows for name in re.findall(r"(?:CVE|GHSA|PYSEC)-[\w-]+", row))


def findings(database: Osv, packages: Iterable[Asked]) -> list[Finding]:
    """All advisories of these packages."""
    told = database.advisories(sorted(packages))
    named = [(package, name) for package, names in told.items() for name in names]
    with ThreadPoolExecutor(8) as pool:
        return sorted(finding for finding in pool.map(lambda each: database.finding(*each), named) if finding is not None)


def waits_for_debian(finding: Finding) -> bool:
    """Debian has no fixed package of it: making the images anew would not help."""
    return finding.package.ecosystem.startswith("Debian") and not finding.fixed


def table(found: Iterable[Finding], holders: Mapping[Asked, frozenset[str]]) -> Iterator[str]:
    """A line for each advisory, in columns."""
    rows = [("IMAGES", "PACKAGE", "VERSION", "ADVISORY", "FIXED IN")]
    for each in found:
        images = ",".join(name for name in IMAGES if name in holders[each.package])
        names = ",".join((each.advisory, *(name for name in each.names if name.startswith("CVE-"))))
        rows.append((images, each.package.name, each.package.version, names, ", ".join(each.fixed) or "-"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)), row[4]]).rstrip()


def report(found: Sequence[Finding], held: Contents, known: frozenset[str]) -> tuple[bool, str]:
    """Whether nothing is left to judge, and the page that says so."""
    waiting = [each for each in found if waits_for_debian(each)]
    left = [each for each in found if not waits_for_debian(each) and not known.intersection((each.advisory, *each.names))]
    lines = [*table(left, held.holders), ""] if left else []
    counted = len(found) - len(left) - len(waiting)
    lines.append(f"{len(held.holders)} packages: {len(left)} advisories to judge, {counted} named in {JUDGED}.")
    if waiting:
        lines.append(f"{len(waiting)} more are Debian's, which has no fixed package of them yet.")
    if held.nameless:
        counts = ", ".join(f"{image} {count}" for image, count in held.nameless.items())
        lines.append(f"Not looked up, since they don't say of which project they are: jars of {counts}.")
    return not left, "\n".join(lines)


def read_documents(dist: Path, version: str) -> dict[str, str]:
    """The lists of a version for this machine's platform, by image. ScanError when one is missing."""
    files = {name: dist / Build(version, own_architecture()).file(name, ".cdx.json") for name in IMAGES}
    missing = [str(file) for file in files.values() if not file.exists()]
    if missing:
        raise ScanError(f"not there: {', '.join(missing)}; make sbom VERSION={version} makes them of images that are built")
    return {name: file.read_text() for name, file in files.items()}


def main(version: Annotated[str, typer.Argument(help="The version, whose lists are in dist/.")] = VERSION) -> None:
    """Tell which known vulnerabilities the images of a version have."""
    try:
        held = contents(read_documents(REPOSITORY / "dist", version))
        found = findings(Osv(os.environ.get("OSV_ADDRESS", DATABASE)), held.holders)
    except ScanError as error:
        print(f"nothing was looked up: {error}\nBy hand, as of the day that stands there: {JUDGED}", file=sys.stderr)
        raise typer.Exit(2) from error
    nothing_left, page = report(found, held, judged((REPOSITORY / JUDGED).read_text()))
    print(page)
    raise typer.Exit(0 if nothing_left else 1)


if __name__ == "__main__":
    typer.run(main)
