"""Writes the tables of an encrypted checkpoint as plain Parquet, with nothing of herdkeeper installed.

    pip install cryptography pyarrow
    python3 decrypt_checkpoint.py KEY MANIFEST FOLDER

KEY is a file with the key that `encryption.keyName` of the manifest names, as it is in the Secret; MANIFEST lies with its files where the
checkpoint was written, or in a copy of that; FOLDER gets a folder for each table.
"""

import base64
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from cryptography.fernet import Fernet
from pyarrow.parquet.encryption import create_decryption_properties


def main(key_file: Path, manifest: Path, output: Path) -> None:
    """Decrypts all files, each of which fails if a bit of it was changed, or if it has another one's name."""
    key = base64.b64decode(key_file.read_text().strip().replace("-", "+").replace("_", "/"))
    fernet = Fernet(base64.urlsafe_b64encode(key))
    # What is in the clear may have been changed; what was sealed says all of it, and more.
    whole = json.loads(fernet.decrypt(json.loads(manifest.read_bytes())["encryption"]["sealed"]))
    file_key = fernet.decrypt(whole["encryption"]["fileKey"])
    for table in whole["tables"]:
        for number, file in enumerate(table["files"]):
            properties = create_decryption_properties(file_key, aad_prefix=file["path"].encode())
            rows = pq.read_table(manifest.parent.parent / file["path"], decryption_properties=properties)
            (output / table["name"]).mkdir(parents=True, exist_ok=True)
            pq.write_table(rows, output / table["name"] / f"{number}.parquet")
        print(f"{table['name']}: {table['rows']} rows")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
