"""What is loaded into a node that has an earlier image: the layers that changed, and no other."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "images" / "changed_layers.py"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def put(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def save(file: Path, images: dict[str, list[bytes]]) -> None:
    """An archive as `docker save` writes it: a layer that two images share is there once, and a link."""
    manifest: list[dict[str, object]] = []
    first: dict[bytes, str] = {}
    with tarfile.open(file, "w") as tar:
        for tag, layers in images.items():
            configuration = json.dumps({"rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}}).encode()
            put(tar, f"{digest(configuration)}.json", configuration)
            paths = [f"{len(manifest)}-{number}/layer.tar" for number in range(len(layers))]
            manifest.append({"Config": f"{digest(configuration)}.json", "RepoTags": [tag], "Layers": paths})
            for path, layer in zip(paths, layers, strict=True):
                if layer in first:
                    entry = tarfile.TarInfo(path)
                    entry.type, entry.linkname = tarfile.SYMTYPE, f"../{first[layer]}"
                    tar.addfile(entry)
                else:
                    first[layer] = path
                    put(tar, path, layer)
        put(tar, "manifest.json", json.dumps(manifest).encode())


def changed(folder: Path, images: dict[str, list[bytes]], known: list[str]) -> dict[str, bytes]:
    """What is in the archive, by name."""
    save(folder / "saved.tar", images)
    command = [sys.executable, str(PROGRAM), str(folder / "saved.tar"), str(folder / "images.tar")]
    subprocess.run(command, input="\n".join(known), text=True, check=True)
    with tarfile.open(folder / "images.tar") as tar:
        return {member.name: tar.extractfile(member).read() for member in tar.getmembers()}  # type: ignore[union-attr]


def blob(content: bytes) -> str:
    return f"blobs/{digest(content).replace(':', '/')}"


def test_only_the_layer_above_the_known_ones_is_in_the_archive(tmp_path: Path) -> None:
    below = digest(b"base")
    with_site = digest(f"{below} {digest(b'site')}".encode())
    found = changed(tmp_path, {"herdkeeper/operator:0.1.0": [b"base", b"site", b"app"]}, [below, with_site])
    assert blob(b"app") in found
    assert blob(b"base") not in found
    assert blob(b"site") not in found


def test_a_known_layer_on_another_one_is_not_known(tmp_path: Path) -> None:
    found = changed(
        tmp_path,
        {"herdkeeper/operator:0.1.0": [b"new base", b"site"]},
        [digest(b"base"), digest(f"{digest(b'base')} {digest(b'site')}".encode())],
    )
    assert blob(b"site") in found


def test_a_layer_that_two_images_share_is_in_the_archive_once_with_its_content(tmp_path: Path) -> None:
    found = changed(tmp_path, {"herdkeeper/operator:0.1.0": [b"base", b"app"], "herdkeeper/spark:0.1.0": [b"base", b"jobs"]}, [])
    assert found[blob(b"base")] == b"base"


def test_every_image_is_named_and_tells_the_size_of_each_layer(tmp_path: Path) -> None:
    found = changed(
        tmp_path, {"herdkeeper/operator:0.1.0": [b"base", b"app"], "herdkeeper/spark:0.1.0": [b"base", b"jobs!"]}, [digest(b"base")]
    )
    sizes = {}
    for entry in json.loads(found["index.json"])["manifests"]:
        manifest = json.loads(found[f"blobs/{entry['digest'].replace(':', '/')}"])
        sizes[entry["annotations"]["io.containerd.image.name"]] = [layer["size"] for layer in manifest["layers"]]
    assert sizes == {"docker.io/herdkeeper/operator:0.1.0": [4, 3], "docker.io/herdkeeper/spark:0.1.0": [4, 5]}
