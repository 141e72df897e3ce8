"""Several create one name at once. That the second of two in a row is refused tells nothing of a place that looks first and writes then: it
gives a name to all who have looked before one of them wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import UnsupportedOperation
from threading import Barrier


def why_not_one(creators: Sequence[Callable[[bytes], bool]], read: Callable[[], bytes]) -> str | None:
    """Has each of these create the same new name, with bytes of its own, all at once; why not exactly one of them did. `read` gives what is
    there then.

    An error is no answer, but it is none that the name is theirs. Raises OSError where nobody was told so, and UnsupportedOperation.
    """
    together, failed = Barrier(len(creators), timeout=60), list[OSError]()

    def race(content: bytes, create: Callable[[bytes], bool]) -> bool:
        together.wait()
        try:
            return create(content)
        except UnsupportedOperation:
            raise
        except OSError as error:
            failed.append(error)
            return False

    contents = [b"of %d" % number for number in range(len(creators))]
    with ThreadPoolExecutor(len(creators)) as racing:
        won = [content for content, created in zip(contents, racing.map(race, contents, creators), strict=True) if created]
    if not won:
        raise failed[0] if failed else OSError(f"of {len(creators)} concurrent creates none succeeded")
    if len(won) > 1:
        return f"of {len(creators)} concurrent creates {len(won)} succeeded"
    return None if read() == won[0] else f"of {len(creators)} concurrent creates one that was refused has written"
