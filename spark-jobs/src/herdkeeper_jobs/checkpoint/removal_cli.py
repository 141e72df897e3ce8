"""`python -m herdkeeper_jobs.checkpoint.removal_cli`: removes a checkpoint's manifest, then the files that no other manifest names.

Exit codes: 0 removed, or nothing left to remove; 2 refused arguments; 3 worth a retry; 42 a manifest can't be read or leads out of its
folder, and nothing was removed. One sentence goes to the container's termination message and to standard output.

Use it only on a checkpoint that nothing writes, restores or refers to. The operator ensures that; so must a person who calls it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from herdkeeper.protocol.job_summary import JobOutcome
from herdkeeper.shared.names import DESTINATION_VARIABLES
from herdkeeper_jobs.checkpoint.removal import Removed, remove_checkpoint
from herdkeeper_jobs.errors import CheckpointRefused, InvariantViolated
from herdkeeper_jobs.shared_arguments import add_destination_argument
from herdkeeper_jobs.storage.stored_path import stored_argument, why_unusable
from herdkeeper_jobs.termination_message import write_termination_message


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the removal and returns the exit code."""
    parsed = _parser().parse_args(arguments)
    outcome, sentence = _attempt(parsed)
    write_termination_message(sentence[:1000])
    return outcome.exit_code


def _attempt(parsed: argparse.Namespace) -> tuple[JobOutcome, str]:
    try:
        destination = stored_argument("--destination", parsed.destination, DESTINATION_VARIABLES, CheckpointRefused)
        if (unusable := why_unusable(destination, writes=False)) is not None:
            return JobOutcome.CONFIGURATION_REFUSED, f"--destination is {parsed.destination!r}: {unusable}"
        removed = remove_checkpoint(destination, parsed.run_id, parsed.manifest or None, only_own=parsed.only_own)
    except ValueError as error:
        return JobOutcome.CONFIGURATION_REFUSED, str(error)
    except InvariantViolated as error:
        return JobOutcome.INVARIANT_VIOLATED, str(error)
    except OSError as error:
        return JobOutcome.RETRYABLE, f"{type(error).__name__}: {error}"
    return JobOutcome.SUCCEEDED if removed.existed or removed.files else JobOutcome.ALREADY_DONE, _sentence(removed)


def _sentence(removed: Removed) -> str:
    kept = f"; {removed.kept} files of this run stay, since a manifest names them" if removed.kept else ""
    if not removed.existed and not removed.files:
        return f"nothing was left to remove{kept}"
    return f"{removed.files} files with {removed.bytes} bytes are removed{kept}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="herdkeeper_jobs.checkpoint.removal_cli", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_destination_argument(parser, "folder with checkpoints")
    parser.add_argument("--run-id", required=True, help="run whose checkpoint is removed")
    parser.add_argument(
        "--manifest", default="", metavar="PATH", help="below the destination; without it only files without a manifest are removed"
    )
    parser.add_argument("--only-own", action="store_true", help="keep a checkpoint that another run made, and this one only reused")
    return parser


if __name__ == "__main__":
    sys.exit(main())
