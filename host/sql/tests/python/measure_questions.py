#!/usr/bin/env python3
"""How long the questions of the book take over a store with ten million rows: directly and over Flight SQL.

    measure_questions.py [CONNECTIONS [FOLDER]]

Makes a store of made-up rows (a million connections, ten transactions, packets, events and segments each, a finding each, two
taps, twelve hours) unless FOLDER has one,
runs the queries of docs/src/questions.md over both taps and prints a table: the best of three, seconds. WEIR_SQL and
WEIR_SQL_ROWS name the programs: weir-sql, and its example `rows`.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
from test_questions import ROOT, questions

WEIR_SQL = os.environ.get("WEIR_SQL", str(ROOT / "bin" / "weir-sql"))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "host" / "target"))
ROWS = os.environ.get("WEIR_SQL_ROWS", str(TARGET / "sql" / "examples" / "rows"))
RUNS = 3


def best(run, *arguments):
    """The shortest of three runs, s."""
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run(*arguments)
        times.append(time.perf_counter() - begin)
    return min(times)


def main():
    """Measure and print."""
    connections = sys.argv[1] if len(sys.argv) > 1 else "1000000"
    folder = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()
    if not (Path(folder) / "manifest").exists():
        subprocess.run([ROWS, folder, connections, "12"], check=True)
    server = subprocess.Popen(
        [WEIR_SQL, "serve", "--store", folder, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    address = server.stdout.readline().split()[-1]
    print("| question | rows of its tables | weir-sql query | Flight SQL |\n|---|---|---|---|")
    try:
        with flight_sql.connect(address, autocommit=True) as connection, connection.cursor() as cursor:

            def ask(sql):
                cursor.execute(sql)
                return cursor.fetch_arrow_table()

            def run(sql):
                command = [WEIR_SQL, "query", "--store", folder, sql]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

            for number, title, query, _ in questions():
                sql = re.sub(r"tap = '\w+'", "tap IN ('east', 'west')", query)
                tables = set(re.findall(r"FROM (connections|transactions|segments|findings|events)", sql))
                rows = sum(ask(f"SELECT count(*) FROM {table}")[0][0].as_py() for table in tables)
                print(f"| {number}. {title} | {rows:,} | {best(run, sql):.2f} | {best(ask, sql):.2f} |", flush=True)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
