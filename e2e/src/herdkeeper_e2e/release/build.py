"""Makes the files of a release in dist/, from a commit of the repository: whoever makes them again gets the same bytes.

chart package, install.yaml (the chart rendered, for those without Helm), quickstart.yaml, all examples, two wheels, release notes, and
SHA256SUMS over all of it. Where a container engine answers, images are built from the checkout and archived for each platform, with a list
of what they hold. Their bytes differ from build to build.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.api.default_images import VERSION
from herdkeeper_e2e.control_plane import helm
from herdkeeper_e2e.release.sbom import write_sboms
from herdkeeper_e2e.release.source import IMAGES, REPOSITORY, Build, ReleaseError, builds, commit, commit_epoch, output, uncommitted

NAMESPACE = "herdkeeper-system"
CHECKSUMS = "SHA256SUMS"
CHART = "charts/herdkeeper"
SQL_PROJECT = "sql"
"""The folder of what applications install."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?")
_INDEXES = ("manifest.json", "repositories", "index.json")
"""The files of an archive that name its image."""
_OLDEST_KUBERNETES = "v1.30.0"
"""As the chart's kubeVersion."""


@dataclass(frozen=True)
class Release:
    """A version (`0.2.0`), the registry that its chart names (may be empty), and the time of its files in seconds since 1970."""

    version: str
    registry: str
    epoch: int

    def __post_init__(self) -> None:
        if _VERSION.fullmatch(self.version) is None:
            raise ReleaseError(f"VERSION is {self.version!r}: set three numbers, e.g. 0.2.0 or 0.2.0-rc.1")
        if self.registry.endswith("/") or "://" in self.registry:
            raise ReleaseError(f"REGISTRY is {self.registry!r}: set a host and a path, e.g. registry.example.com/team")


def release_notes(changelog: str, version: str) -> str:
    """The section of a version in CHANGELOG.md, without its heading. ReleaseError when it has none."""
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?$\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ReleaseError(f"CHANGELOG.md says nothing of {version}: write a section `## {version}`")
    return f"# herdkeeper {version}\n\n{found[1].strip()}\n"


def stamp(checkout: Path, release: Release) -> None:
    """Writes version and registry into a copy of the checkout."""
    for project in (checkout, checkout / SQL_PROJECT):
        _replace(project / "pyproject.toml", r'^version = ".*"$', f'version = "{release.version}"')
    _replace(checkout / "pyproject.toml", r'"herdkeeper-sql==[^"]*"', f'"herdkeeper-sql=={release.version}"')
    _replace(checkout / CHART / "Chart.yaml", r"^version: .*$", f"version: {release.version}")
    _replace(checkout / CHART / "Chart.yaml", r"^appVersion: .*$", f"appVersion: {release.version}")
    _replace(checkout / CHART / "values.yaml", r'^  registry: ""$', f'  registry: "{release.registry}"')
    named = f"{release.registry}/herdkeeper" if release.registry else "herdkeeper"
    for example in (checkout / "examples").rglob("*.yaml"):
        text = re.sub(r"^( *image: )herdkeeper/([a-z]+):.*$", rf"\1{named}/\2:{release.version}", example.read_text(), flags=re.MULTILINE)
        example.write_text(text)


def write_package(folder: Path, to: Path, epoch: int) -> None:
    """A folder as a tar file, such as the chart's package: Helm's own `package` writes the present time into it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder)}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, epoch, 0o644
            with path.open("rb") as content:
                archive.addfile(entry, content)
    to.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def install_manifest(chart: Path) -> str:
    """The namespace and all that the chart makes, for `kubectl apply --server-side`."""
    command = (str(helm()), "template", "herdkeeper", str(chart), "--namespace", NAMESPACE, "--kube-version", _OLDEST_KUBERNETES)
    objects = output(*command).replace("app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")
    return f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n{objects}"


def write_files(repository: Path, release: Release, dist: Path) -> None:
    """All but images and checksums, from the commit that is checked out. ReleaseError when the changelog lacks the version."""
    dist.mkdir(parents=True, exist_ok=True)
    with _stamped(repository, release) as checkout:
        (dist / "RELEASE-NOTES.md").write_text(release_notes((checkout / "CHANGELOG.md").read_text(), release.version))
        _write_chart_of(checkout, release, dist)
        (dist / "install.yaml").write_text(install_manifest(checkout / CHART))
        (dist / "quickstart.yaml").write_bytes((checkout / "examples/quickstart.yaml").read_bytes())
        write_package(checkout / "examples", dist / f"herdkeeper-examples-{release.version}.tgz", release.epoch)
        for project in (checkout, checkout / SQL_PROJECT):
            _write_wheel(project, dist, release.epoch)


def write_release_chart(repository: Path, release: Release, dist: Path) -> None:
    """The chart's package alone, from the commit that is checked out."""
    with _stamped(repository, release) as checkout:
        _write_chart_of(checkout, release, dist)


@contextmanager
def _stamped(repository: Path, release: Release) -> Iterator[Path]:
    """A copy of the commit that is checked out, with version and registry of the release."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "herdkeeper"
        checkout.mkdir()
        committed = subprocess.run(["git", "archive", "HEAD"], cwd=repository, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(committed)) as archive:
            archive.extractall(checkout, filter="data")
        stamp(checkout, release)
        yield checkout


def _write_chart_of(checkout: Path, release: Release, dist: Path) -> None:
    write_package(checkout / CHART, dist / f"herdkeeper-{release.version}.tgz", release.epoch)


def _write_wheel(project: Path, dist: Path, epoch: int) -> None:
    quiet = ("-q", "--disable-pip-version-check")
    # what builds it is in the environment (build.lock), where its hashes were checked
    command = (sys.executable, "-m", "pip", "wheel", *quiet, "--no-deps", "--no-build-isolation", "-w", str(dist), str(project))
    output(*command, environment={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})


def write_images(repository: Path, build: Build, source: str, dist: Path) -> None:
    """An archive of each image, as `docker load` reads it. Their labels name the commit and, unless it is empty, `source`."""
    origin = {"HERDKEEPER_REVISION": commit(repository), "HERDKEEPER_SOURCE": source}
    environment = {**os.environ, **origin, "HERDKEEPER_IMAGE_TAG": build.version, "HERDKEEPER_PLATFORM": build.platform}
    subprocess.run([str(repository / "e2e/images/build.sh"), *IMAGES], env=environment, check=True)
    for name in IMAGES:
        with tempfile.NamedTemporaryFile(dir=dist) as saved:
            subprocess.run(["docker", "save", "-o", saved.name, f"herdkeeper/{name}:{build.tag}"], check=True)
            rename(Path(saved.name), dist / build.file(name, ".tar"), build)


def rename(saved: Path, to: Path, build: Build) -> None:
    """An archive of `docker save` with the tag that users know, whatever the platform: its images are loaded under their version."""
    with tarfile.open(saved) as source, tarfile.open(to, "w", format=tarfile.PAX_FORMAT) as archive:
        for member in source:
            content = source.extractfile(member) if member.isreg() else None
            if content is not None and member.name in _INDEXES:
                named = content.read().replace(build.tag.encode(), build.version.encode())
                member.size, content = len(named), io.BytesIO(named)
            archive.addfile(member, content)


def checksums(files: Iterable[Path]) -> str:
    """Lines as `sha256sum --check` reads them, by name."""
    lines = []
    for file in sorted(files):
        with file.open("rb") as content:
            lines.append(f"{hashlib.file_digest(content, 'sha256').hexdigest()}  {file.name}\n")
    return "".join(lines)


def engine_answers() -> bool:
    """Whether there is a container engine to build images with."""
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _replace(file: Path, line: str, by: str) -> None:
    text, count = re.subn(line, by, file.read_text(), count=1, flags=re.MULTILINE)
    if count != 1:
        raise ReleaseError(f"{file.name} has no line {line}")
    file.write_text(text)


def main(
    version: Annotated[str, typer.Argument(help="The version, e.g. 0.2.0.")],
    registry: Annotated[str, typer.Option(help="What stands before `herdkeeper/NAME` in the chart's images.")] = "",
    source: Annotated[str, typer.Option(help="The address of the repository, for the images' labels.")] = "",
    platforms: Annotated[str, typer.Option(help="Of the images: linux/amd64, linux/arm64 or both; by default this machine's.")] = "",
) -> None:
    """Make the files of a release in dist/."""
    dist = REPOSITORY / "dist"
    try:
        release = Release(version, registry, commit_epoch(REPOSITORY))
        built = builds(version, platforms)
        if version.partition("-")[0] != VERSION:
            raise ReleaseError(f"VERSION is {version}, and this checkout is {VERSION}: docs/releases.md tells how to begin another version")
        if changed := uncommitted(REPOSITORY):
            raise ReleaseError(f"{len(changed)} files are not as committed ({', '.join(changed[:3])}): commit them, or put them back")
        release_notes((REPOSITORY / "CHANGELOG.md").read_text(), version)  # before what is in dist/ goes
        for file in dist.glob("*"):
            file.unlink()
        write_files(REPOSITORY, release, dist)
    except ReleaseError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(code=1) from error
    if engine_answers():
        for build in built:
            write_images(REPOSITORY, build, source, dist)
            write_sboms(build, dist, release.epoch)
    else:
        typer.echo("no container engine answers: dist/ has no images, and no lists of what they hold", err=True)
    (dist / CHECKSUMS).write_text(checksums(dist.iterdir()))
    typer.echo((dist / CHECKSUMS).read_text(), nl=False)


if __name__ == "__main__":
    typer.run(main)
