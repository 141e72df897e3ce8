"""A program that reads and writes by PEP 249, in a pod with the connection Secret as client.yaml gives it (HERDDB_host, HERDDB_CA_FILE):

pip install herdkeeper_sql-0.2.0-py3-none-any.whl
"""

import os
import uuid
from pathlib import Path

from herdkeeper.sql import dbapi


def connect() -> dbapi.Connection:
    """A connection to whoever leads now, whom the Secret's `ca.crt` verifies. Without HERDDB_CA_FILE it is in plain text."""
    found = {name: os.environ[f"HERDDB_{name}"] for name in ("host", "port", "user", "password", "database")}
    ca_file = os.environ.get("HERDDB_CA_FILE")
    authorities = Path(ca_file).read_text() if ca_file else None
    login = found["user"], found["password"], found["database"]
    return dbapi.connect(found["host"], *login, port=int(found["port"]), authorities=authorities)


def book(connection: dbapi.Connection, booking: str, seats: int, attempts: int = 5) -> None:
    """A transaction that may be repeated as a whole: its key was chosen before, so a second time can't book twice."""
    for attempt in range(attempts):
        try:
            cursor = connection.cursor()
            cursor.execute("INSERT INTO bookings(id, seats) VALUES(?, ?)", [booking, seats])
            cursor.execute("UPDATE capacity SET seats = seats - ? WHERE flight = ?", [seats, "UA1"])
            connection.commit()
            return
        except dbapi.IntegrityError:
            connection.rollback()
            return  # booked before, perhaps by the COMMIT whose answer was lost
        except dbapi.OperationalError:
            # The leader was lost, and nothing is there; or OutcomeUnknown, one of its kinds: then the key tells it next time.
            connection.rollback()
            if attempt + 1 == attempts:
                raise


def main() -> None:
    """Makes two tables, books twice under one key, and reads what is there."""
    with connect() as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE IF NOT EXISTS capacity (flight string PRIMARY KEY, seats int)")
        cursor.execute("CREATE TABLE IF NOT EXISTS bookings (id string PRIMARY KEY, seats int)")
        cursor.execute("UPSERT INTO capacity(flight, seats) VALUES(?, ?)", ["UA1", 100])
        connection.commit()
        booking = str(uuid.uuid4())
        book(connection, booking, 2)
        book(connection, booking, 2)
        for flight, seats in cursor.execute("SELECT flight, seats FROM capacity"):
            print(flight, seats)


if __name__ == "__main__":
    main()
