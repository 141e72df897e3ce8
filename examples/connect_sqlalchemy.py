"""The same with SQLAlchemy 2, whose pool is the one to use:

pip install 'herdkeeper_sql-0.2.0-py3-none-any.whl[sqlalchemy]'
"""

import os
from datetime import UTC, datetime

from sqlalchemy import URL, DateTime, Engine, ForeignKey, String, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    """Of all tables."""


class Flight(Base):
    """Its key is made by the server."""

    __tablename__ = "planned_flights"
    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[str] = mapped_column(String(10), unique=True)
    departs: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    passengers: Mapped[list["Passenger"]] = relationship(back_populates="flight", cascade="all, delete-orphan")


class Passenger(Base):
    """Of one flight."""

    __tablename__ = "passengers"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80))
    flight_id: Mapped[int] = mapped_column(ForeignKey("planned_flights.id"))
    flight: Mapped[Flight] = relationship(back_populates="passengers")


def engine() -> Engine:
    """Five connections at most, each of which finds the leader by itself, and verifies it by the Secret's `ca.crt`."""
    found = {name: os.environ[f"HERDDB_{name}"] for name in ("host", "port", "user", "password", "database")}
    verified = {"ca_file": os.environ["HERDDB_CA_FILE"]} if "HERDDB_CA_FILE" in os.environ else {}
    url = URL.create("herddb+herdkeeper", found["user"], found["password"], found["host"], int(found["port"]), found["database"], verified)
    return create_engine(url, pool_size=5, max_overflow=0)


def main() -> None:
    """Makes the tables, plans a flight, and reads it back."""
    database = engine()
    Base.metadata.drop_all(database)
    Base.metadata.create_all(database)
    with Session(database) as session:
        flight = Flight(number="UA1", departs=datetime(2026, 1, 2, 8, 30, tzinfo=UTC))
        flight.passengers = [Passenger(name="Ada"), Passenger(name="Grace")]
        session.add(flight)
        session.commit()
    with Session(database) as session:
        for found in session.scalars(select(Flight).order_by(Flight.departs)):
            print(found.number, found.departs.isoformat(), sorted(passenger.name for passenger in found.passengers))
    database.dispose()


if __name__ == "__main__":
    main()
