"""Arguments that several programs share, defined once. Spark's are in `spark_session`."""

from __future__ import annotations

import argparse

from herdkeeper.shared.names import ARCHIVE_VARIABLES, DESTINATION_VARIABLES, STORE_AUTHORITIES_VARIABLE
from herdkeeper_jobs.encryption.keys import FOLDERS


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--zookeeper", required=True, metavar="HOSTS", help="ZooKeeper's members, host:port separated by commas")
    parser.add_argument(
        "--ledgers-root", required=True, metavar="PATH", help="BookKeeper's root in ZooKeeper, for example /namespace/name/ledgers"
    )


def add_tablespace_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--herd-root", required=True, metavar="PATH", help="HerdDB's root in ZooKeeper, for example /namespace/name/herd")
    parser.add_argument("--tablespace", required=True, help="name of the tablespace")


def add_destination_argument(parser: argparse.ArgumentParser, folder: str) -> None:
    """--destination; `folder` describes its purpose."""
    parser.add_argument(
        "--destination",
        required=True,
        help=f"{folder}; or s3://bucket/prefix, gs://bucket/prefix or az://container/prefix, opened with obstore's variables, "
        f"{DESTINATION_VARIABLES} before their names, and {STORE_AUTHORITIES_VARIABLE} likewise (certificates, PEM)",
    )


def add_archive_argument(parser: argparse.ArgumentParser, when: str = "") -> None:
    """--archive, empty for the checkpoints' place; `when` says what it belongs to."""
    parser.add_argument(
        "--archive",
        default="",
        help=f"{when}folder of the log's archive, or s3://bucket/prefix, gs:// or az://, if it is not the checkpoints' place; a store "
        f"needs the same variables as theirs, with the prefix {ARCHIVE_VARIABLES}",
    )


def add_encryption_argument(parser: argparse.ArgumentParser, when: str = "") -> None:
    """--encrypt-with, for `encryption.keys.writing_key`; `when` says what it belongs to."""
    parser.add_argument(
        "--encrypt-with",
        default="",
        metavar="PATH",
        help=f"{when}encrypts what is written: a key's file, or a folder with one key. What is read may be encrypted in any case: the "
        f"variable {FOLDERS} lists folders with keys, separated by `:`",
    )


def why_no_reading_rate(parsed: argparse.Namespace) -> str | None:
    """Returns what is wrong with --bytes-per-second-per-bookie, or None."""
    rate = parsed.bytes_per_second_per_bookie
    return None if rate > 0 else f"--bytes-per-second-per-bookie is {rate:g}: give more than 0, or leave it out for no limit"


def add_reading_rate_argument(parser: argparse.ArgumentParser) -> None:
    """--bytes-per-second-per-bookie, a float; infinity for no limit."""
    parser.add_argument(
        "--bytes-per-second-per-bookie",
        type=float,
        default=float("inf"),
        metavar="N",
        help="upper limit for reads from a bookie (default: none)",
    )
