"""The two tables of the workload and their SQL. As a program it creates them: `python3 -m herdkeeper_e2e.checker.tables --registers N`.

The set has a row per id with the name of the writing operation. Each register starts with 0. The Java program (e2e/jdbc) has the same
statements.
"""

from __future__ import annotations

import argparse

from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.session import open_session

PATIENCE = Patience(deadline_seconds=120.0, call_seconds=30.0)
CREATE_SET = "CREATE TABLE checker_set (`id` long, `operation` string, PRIMARY KEY (`id`))"
INSERT_ROW = "INSERT INTO checker_set (`id`, `operation`) VALUES (?, ?)"
NAME_ROW = "UPDATE checker_set SET `operation` = ? WHERE `id` = ?"
SELECT_SET = "SELECT `id`, `operation` FROM checker_set"
CREATE_REGISTERS = "CREATE TABLE checker_register (`register` int, `value` long, PRIMARY KEY (`register`))"
INSERT_REGISTER = "INSERT INTO checker_register (`register`, `value`) VALUES (?, 0)"
WRITE_REGISTER = "UPDATE checker_register SET `value` = ? WHERE `register` = ? AND `value` < ?"
"""The condition keeps a late UPDATE, abandoned by its client, from overwriting a newer value."""
SELECT_REGISTERS = "SELECT r.`register`, r.`value`, l.`ledger`, l.`offset` FROM checker_register r, syslogstatus l"
"""Together with the log position of the same node."""
SELECT_POSITION = "SELECT `ledger`, `offset` FROM syslogstatus"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registers", type=int, required=True)
    arguments = parser.parse_args()
    with open_session() as session, session.connect(PATIENCE) as connection:
        connection.execute(CREATE_SET)
        connection.execute(CREATE_REGISTERS)
        for register in range(arguments.registers):
            connection.execute(INSERT_REGISTER, (register,))


if __name__ == "__main__":
    main()
