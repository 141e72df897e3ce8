"""Writes an archive of images for containerd with those layers only that a node does not have yet.

Usage: changed_layers.py SAVED ARCHIVE < CHAINS   (SAVED: what `docker save` wrote; CHAINS: the keys of the node's committed snapshots)

containerd finds an unpacked layer by its chain: the digest of everything up to it. What it finds so, it doesn't read from an archive.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import IO


def digest(content: bytes) -> str:
    """As OCI writes it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def chains(layers: list[str]) -> list[str]:
    """The chain of each layer, from the digests of their tar files."""
    found = layers[:1]
    for layer in layers[1:]:
        found.append(digest(f"{found[-1]} {layer}".encode()))
    return found


class Archive:
    """An OCI archive that is being written. What is added twice is written once."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self.tar = tar
        self.written: set[str] = set()

    def add(self, name: str, content: IO[bytes]) -> None:
        """A file."""
        if name in self.written:
            return
        self.written.add(name)
        entry = tarfile.TarInfo(name)
        entry.size = size(content)
        self.tar.addfile(entry, content)

    def add_document(self, kind: str, content: bytes) -> dict[str, object]:
        """A manifest or a configuration; its descriptor."""
        name = digest(content)
        self.add(blob(name), io.BytesIO(content))
        return {"mediaType": f"application/vnd.oci.image.{kind}+json", "digest": name, "size": len(content)}


def size(content: IO[bytes]) -> int:
    """In bytes; leaves the file at its beginning."""
    end = content.seek(0, io.SEEK_END)
    content.seek(0)
    return end


def blob(name: str) -> str:
    """Where an archive has what a digest names."""
    return f"blobs/{name.replace(':', '/')}"


def opened(saved: tarfile.TarFile, name: str) -> IO[bytes]:
    """A file of the archive; the layer of one image may be a link to another's. ValueError when it is none that has content."""
    file = saved.extractfile(name)
    if file is None:
        raise ValueError(f"{name} in {saved.name!r}: not a file")
    return file


def write(saved: tarfile.TarFile, archive: Archive, known: set[str]) -> None:
    """Writes the images that were saved, less the layers whose chains are known."""
    manifests = []
    for image in json.load(opened(saved, "manifest.json")):
        configuration = opened(saved, image["Config"]).read()
        names = json.loads(configuration)["rootfs"]["diff_ids"]
        layers = []
        for name, chain, path in zip(names, chains(names), image["Layers"], strict=True):
            content = opened(saved, path)
            layers.append({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": name, "size": size(content)})
            if chain not in known:
                archive.add(blob(name), content)
        manifest = {"schemaVersion": 2, "config": archive.add_document("config.v1", configuration), "layers": layers}
        descriptor = archive.add_document("manifest.v1", json.dumps(manifest).encode())
        manifests += [{**descriptor, "annotations": {"io.containerd.image.name": f"docker.io/{tag}"}} for tag in image["RepoTags"]]
    archive.add("oci-layout", io.BytesIO(b'{"imageLayoutVersion": "1.0.0"}'))
    archive.add("index.json", io.BytesIO(json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()))


def main() -> None:
    """Makes the archive."""
    source, target = map(Path, sys.argv[1:])
    known = {line.strip() for line in sys.stdin}
    with tarfile.open(source) as saved, tarfile.open(target, "w") as tar:
        write(saved, Archive(tar), known)


if __name__ == "__main__":
    main()
