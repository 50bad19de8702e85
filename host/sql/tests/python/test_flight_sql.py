"""Arrow Flight SQL as the Python ADBC driver speaks it, against the built server."""

import os
import subprocess
import threading
import time
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import pytest

ROOT = Path(__file__).resolve().parents[4]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "host" / "target")) / "debug"
WEIR_SQL = os.environ.get("WEIR_SQL", str(TARGET / "weir-sql"))
# Writes a store of rows made up.
ROWS = str(TARGET / "examples" / "rows")
CONNECTIONS = 3000
LONG = "SELECT sum(a.index * b.index + c.index) FROM transactions a, transactions b, transactions c"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with 3,000 connections of ten transactions."""
    folder = tmp_path_factory.mktemp("store")
    subprocess.run([ROWS, folder, str(CONNECTIONS)], check=True, stdout=subprocess.DEVNULL)
    return folder


def serve(store, *options):
    """Start a server; returns the process and its address."""
    command = [WEIR_SQL, "serve", "--store", str(store), "--listen", "127.0.0.1:0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    assert line.startswith("weir-sql: Flight SQL on grpc://"), line
    return server, line.split()[-1]


@pytest.fixture(scope="module")
def server(store):
    """Address of a server over the store."""
    process, address = serve(store)
    yield address
    process.terminate()
    assert process.wait(timeout=20) == 0, "it ends in order"


@pytest.fixture
def connection(server):
    """An open connection; DB-API's transactions are none of a store that is only read."""
    with flight_sql.connect(server, autocommit=True) as connection:
        yield connection


def ask(connection, sql, parameters=None):
    """All rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


def test_rows_and_types(connection):
    """Rows arrive, with the types that the store has."""
    assert ask(connection, "SELECT count(*) FROM transactions") == [(CONNECTIONS * 10,)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT tap, id, client_address, first_packet_time, close_kind, setup_missing FROM connections")
        table = cursor.fetch_arrow_table()
    assert table.num_rows == CONNECTIONS
    types = [str(field.type) for field in table.schema]
    assert types == ["string", "uint64", "string", "timestamp[ns, tz=UTC]", "string", "list<item: string>"]
    assert sorted(table["id"].to_pylist()) == list(range(CONNECTIONS))


def test_many_batches(connection):
    """An answer of many batches is whole, and in order."""
    sql = "SELECT connection_id, index FROM transactions ORDER BY connection_id, index"
    with connection.cursor() as cursor:
        cursor.execute(sql)
        table = cursor.fetch_arrow_table()
    rows = list(zip(table["connection_id"].to_pylist(), table["index"].to_pylist(), strict=True))
    assert rows == [(row // 10, row % 10) for row in range(CONNECTIONS * 10)]


def test_parameters(connection):
    """Prepared statements with parameters, as ? and as $1, again and again."""
    for sql in (
        "SELECT count(*) FROM connections WHERE id < ? AND tap = ?",
        "SELECT count(*) FROM connections WHERE id < $1 AND tap = $2",
    ):
        assert ask(connection, sql, (100, "east")) == [(50,)]
        assert ask(connection, sql, (10, "west")) == [(5,)]
    with connection.cursor() as cursor:
        cursor.adbc_prepare(sql)
        for bound, expected in ((100, 50), (1000, 500), (0, 0)):
            cursor.execute(sql, (bound, "west"))
            assert cursor.fetchone() == (expected,)


def test_what_there_is(connection):
    """Catalog, schema, tables with their columns, and what the server is."""
    objects = connection.adbc_get_objects(depth="columns").read_all().to_pylist()
    assert [catalog["catalog_name"] for catalog in objects] == ["weir"]
    schemas = objects[0]["catalog_db_schemas"]
    assert [schema["db_schema_name"] for schema in schemas] == ["store"]
    tables = {table["table_name"]: table for table in schemas[0]["db_schema_tables"]}
    assert {"connections", "transactions", "segments", "findings", "packets"} <= tables.keys()
    columns = [column["column_name"] for column in tables["transactions"]["table_columns"]]
    assert {"tap", "hour", "server_seconds"} <= set(columns)
    assert connection.adbc_get_table_types() == ["TABLE"]
    schema = connection.adbc_get_table_schema("connections", db_schema_filter="store")
    assert str(schema.field("first_packet_time").type) == "timestamp[ns, tz=UTC]"
    assert connection.adbc_get_info()["vendor_name"] == "Weir"


def test_errors(connection):
    """What cannot be is said in the server's words."""
    with pytest.raises(adbc_driver_manager.Error, match="client_address"):
        ask(connection, "SELECT client_adress FROM connections")
    with pytest.raises(adbc_driver_manager.Error, match="SQL only reads the store"):
        ask(connection, "DROP TABLE connections")
    with pytest.raises(adbc_driver_manager.Error, match="SQL only reads the store"):
        ask(connection, "INSERT INTO connections SELECT * FROM connections")
    assert ask(connection, "SELECT 1") == [(1,)], "and goes on"


def test_cancel(connection):
    """A query that would take hours ends when it is cancelled, and the server has time for others."""
    with connection.cursor() as cursor:
        timer = threading.Timer(1, cursor.adbc_cancel)
        timer.start()
        begin = time.monotonic()
        cursor.execute(LONG)
        with pytest.raises(adbc_driver_manager.Error, match="(?i)cancel"):
            cursor.fetchall()
        timer.join()
    assert time.monotonic() - begin < 15
    assert ask(connection, "SELECT count(*) FROM connections") == [(CONNECTIONS,)]


def test_limits(store):
    """A server's limits are told to its clients."""
    process, address = serve(store, "--timeout", "4", "--memory", "2")
    try:
        with flight_sql.connect(address, autocommit=True) as connection:
            with pytest.raises(adbc_driver_manager.Error, match="--timeout"):
                ask(connection, LONG)
            with pytest.raises(adbc_driver_manager.Error, match="--memory"):
                ask(connection, "SELECT * FROM transactions ORDER BY server_seconds, signature")
            assert ask(connection, "SELECT count(*) FROM connections") == [(CONNECTIONS,)]
    finally:
        process.terminate()
        process.wait(timeout=20)


def test_live(tmp_path):
    """A server that runs sees a commit at once."""

    def commit(connections):
        subprocess.run([ROWS, tmp_path, str(connections)], check=True, stdout=subprocess.DEVNULL)

    commit(100)
    process, address = serve(tmp_path)
    try:
        with flight_sql.connect(address, autocommit=True) as connection:
            sql = "SELECT count(*) FROM connections"
            assert ask(connection, sql) == [(100,)]
            commit(50)
            assert ask(connection, sql) == [(150,)]
    finally:
        process.terminate()
        process.wait(timeout=20)


def test_several_at_once(server):
    """Clients do not disturb one another."""
    failures = []

    def client(number):
        try:
            with flight_sql.connect(server, autocommit=True) as connection:
                for _ in range(5):
                    rows = ask(connection, f"SELECT count(*) FROM connections WHERE id % 8 = {number}")
                    assert rows == [(CONNECTIONS // 8,)], rows
        except Exception as error:  # told by the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not failures
