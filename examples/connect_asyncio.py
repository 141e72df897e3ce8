"""A program that reads and writes with asyncio, in a pod with the connection Secret as client.yaml gives it (HERDDB_host, HERDDB_CA_FILE):

pip install herdkeeper_sql-0.2.0-py3-none-any.whl
"""

import asyncio
import os
from pathlib import Path

from herdkeeper.sql import dbapi
from herdkeeper.sql.dbapi import aio


async def connect() -> aio.Connection:
    """A connection to whoever leads now, whom the Secret's `ca.crt` verifies. Without HERDDB_CA_FILE it is in plain text."""
    found = {name: os.environ[f"HERDDB_{name}"] for name in ("host", "port", "user", "password", "database")}
    ca_file = os.environ.get("HERDDB_CA_FILE")
    authorities = Path(ca_file).read_text() if ca_file else None
    login = found["user"], found["password"], found["database"]
    return await aio.connect(found["host"], *login, port=int(found["port"]), authorities=authorities)


async def book(flight: str, seats: int) -> None:
    """A task has a connection of its own. After a time-out it is closed, and what was under way may be committed, or rolled back."""
    async with await connect() as connection, asyncio.timeout(30):
        await connection.cursor().execute("UPDATE booked SET seats = seats - ? WHERE flight = ?", [seats, flight])


async def main() -> None:
    """Makes a table, books in two tasks, and reads what is left."""
    async with await connect() as connection, connection.cursor() as cursor:
        await cursor.execute("CREATE TABLE IF NOT EXISTS booked (flight string PRIMARY KEY, seats int)")
        await cursor.executemany("UPSERT INTO booked(flight, seats) VALUES(?, ?)", [["UA1", 100], ["UA2", 101]])
        await connection.commit()
        await asyncio.gather(book("UA1", 2), book("UA2", 1))
        async for flight, seats in await cursor.execute("SELECT flight, seats FROM booked ORDER BY flight"):
            print(flight, seats)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except dbapi.OutcomeUnknown as error:
        raise SystemExit(f"look whether it was committed: {error}") from error
