"""DataFrames in and out, with the engine of connect_sqlalchemy.py:

pip install pandas 'herdkeeper_sql-0.2.0-py3-none-any.whl[sqlalchemy]'
"""

import pandas as pd
from connect_sqlalchemy import engine
from sqlalchemy import text


def main() -> None:
    """Writes a DataFrame as a table, and reads it back whole and in pieces."""
    database = engine()
    delays = pd.DataFrame(
        {
            "carrier": ["UA", "AA", "DL"],
            "minutes": [3.5, None, -2.0],
            "departed": pd.to_datetime(["2026-01-02 08:30", "2026-01-02 09:00", "2026-01-03 10:00"], utc=True),
        }
    )
    delays.to_sql("delays", database, if_exists="replace", index=False)
    print(pd.read_sql(text("SELECT carrier, minutes FROM delays WHERE carrier <> :c ORDER BY carrier"), database, params={"c": "DL"}))
    with database.connect() as connection:
        for piece in pd.read_sql("SELECT carrier, departed FROM delays ORDER BY carrier", connection, chunksize=2):
            print(len(piece), piece["departed"].dtype)
    database.dispose()


if __name__ == "__main__":
    main()
