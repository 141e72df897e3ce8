"""Silently changes values of rows on a SQL node's disk: `python3 -m herdkeeper_e2e.falsified_page FOLDER OLD NEW`.

FOLDER is a tablespace's (`<uuid>.tablespace`). Its node's process is frozen and killed afterwards, so that it reads the pages at its next
start. OLD and NEW are texts of equal length. Exits with 1 if no page has OLD.

A page: VLong version (1), VLong flags (0), i32 number of records, for each the key and the value (VInt length, bytes). Then i64 XXHash64 of
all that, or 0 for none; the rest is garbage. Source: FileDataStorageManager.rawReadDataPage of HerdDB 0.29.0.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError

NO_HASH = 0


def falsified(page: bytes, old: bytes, new: bytes) -> bytes:
    """Returns the page with `new` in place of `old` in values, without a hash, which the node accepts. Unchanged if no value has it.

    Raises ValueError for texts of different lengths, and MalformedDataError for an invalid page or another version.
    """
    if len(old) != len(new):
        raise ValueError(f"{old!r} has {len(old)} bytes and {new!r} has {len(new)}: they must be of one length")
    reader = JavaDataReader(page)
    version, flags = reader.v_long(), reader.v_long()
    if (version, flags) != (1, 0):
        raise MalformedDataError(f"a page of version {version} with flags {flags}: only version 1 with flags 0 is known")
    count = reader.i32()
    writer = JavaDataWriter().v_long(version).v_long(flags).i32(count)
    changed = False
    for _ in range(count):
        key, value = reader.array(), reader.array() or b""
        changed = changed or old in value
        writer.array(key).array(value.replace(old, new))
    if not changed:
        return page
    reader.i64()
    return writer.i64(NO_HASH).raw(reader.rest()).to_bytes()


def falsify(folder: Path, old: bytes, new: bytes) -> list[Path]:
    """Returns the changed pages of tables."""
    found = []
    for path in sorted(folder.glob("*.table/*.page")):
        page = path.read_bytes()
        if (changed := falsified(page, old, new)) != page:
            path.write_bytes(changed)
            found.append(path)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("old")
    parser.add_argument("new")
    arguments = parser.parse_args()
    pages = falsify(arguments.folder, arguments.old.encode(), arguments.new.encode())
    if not pages:
        sys.exit(f"no page of {arguments.folder} has {arguments.old!r}")
    print("\n".join(map(str, pages)))


if __name__ == "__main__":
    main()
