"""What each image holds, as CycloneDX documents: `python -m herdkeeper_e2e.release.sbom 0.2.0` writes them into dist/."""

from __future__ import annotations

import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.component_evidence import ComponentEvidence, Occurrence
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from herdkeeper.api.default_images import VERSION
from herdkeeper_e2e.release.packages import Found, Origin, Package, maven_jars, packages, tells_of_packages
from herdkeeper_e2e.release.source import IMAGES, REPOSITORY, Build, commit_epoch, output, own_architecture

DISTRIBUTION = "debian-12"
"""Of the base of all images (e2e/images/base.sh): advisories are told by it."""
_NAMESPACE = uuid.UUID("5b0d6a5e-5d0c-4d53-9d5c-0f6c1f0d9f3a")


def document(image: str, version: str, found: tuple[Found, ...], epoch: int) -> str:
    """The document of an image (`herdkeeper/operator`, `0.2.0`) as JSON; the same packages give the same bytes. `epoch`: its time, in
    seconds since 1970."""
    whole = Component(name=image, version=version, type=ComponentType.CONTAINER, bom_ref=image)
    parts = [_component(each) for each in found]
    bom = Bom(
        components=parts,
        serial_number=uuid.uuid5(_NAMESPACE, repr((image, version, found, epoch))),
        metadata=BomMetaData(component=whole, timestamp=datetime.fromtimestamp(epoch, UTC)),
    )
    bom.register_dependency(whole, parts)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _component(found: Found) -> Component:
    package, url = found.package, package_url(found.package)
    return Component(
        name=package.name,
        version=package.version,
        group=package.group or None,
        purl=url,
        bom_ref=url.to_string() if url else f"{package.name}@{package.version}",
        type=ComponentType.LIBRARY,
        hashes=[HashType(alg=HashAlgorithm.SHA_1, content=each) for each in found.sha1],
        evidence=ComponentEvidence(occurrences=[Occurrence(location=place) for place in found.places]),
    )


def package_url(package: Package) -> PackageURL | None:
    """None for a jar of which only the file's name is known: it has no group, without which Maven has no such name."""
    match package.origin:
        case Origin.DEBIAN:
            qualifiers = {"arch": package.architecture, "distro": DISTRIBUTION, "upstream": package.source}
            return PackageURL("deb", "debian", package.name, package.version, qualifiers)
        case Origin.PYTHON:
            return PackageURL("pypi", None, package.name, package.version)
        case Origin.MAVEN:
            return PackageURL("maven", package.group, package.name, package.version)
        case Origin.FILE:
            return None


def files_of(image: str) -> Iterator[tuple[str, bytes]]:
    """The files of an image that tell of packages: paths relative to the root, and contents. ReleaseError when the engine has no such
    image."""
    container = output("docker", "create", image).strip()
    try:
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    content = archive.extractfile(member) if member.isreg() and tells_of_packages(member.name) else None
                    if content is not None:
                        yield member.name, content.read()
    finally:
        output("docker", "rm", "--force", container)


def write_sboms(build: Build, dist: Path, epoch: int) -> None:
    """A document of each image, as `NAME-VERSION-ARCHITECTURE.cdx.json`."""
    dist.mkdir(parents=True, exist_ok=True)
    known = maven_jars("".join(file.read_text() for file in sorted((REPOSITORY / "images").glob("*/jars.sha256"))))
    for name in IMAGES:
        image = f"herdkeeper/{name}"
        found = packages(files_of(f"{image}:{build.tag}"), known)
        (dist / build.file(name, ".cdx.json")).write_text(document(image, build.version, found, epoch))


def main(version: Annotated[str, typer.Argument(help="The version, whose images are built.")] = VERSION) -> None:
    """Write in dist/ what each image holds."""
    write_sboms(Build(version, own_architecture()), REPOSITORY / "dist", commit_epoch(REPOSITORY))


if __name__ == "__main__":
    typer.run(main)
