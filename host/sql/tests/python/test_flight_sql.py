"""Arrow Flight SQL as the Python ADBC driver speaks it, against the built server."""

import importlib.util
import os
import subprocess
import threading
import time
import warnings
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import pytest
from pyarrow import flight

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


def test_the_schema_of_a_query_without_its_rows(connection):
    """GetSchema is that of the answer, and a query that cannot be is refused."""
    sql = "SELECT tap, id, first_packet_time, setup_missing FROM connections"
    with connection.cursor() as cursor:
        schema = cursor.adbc_execute_schema(sql)
        cursor.execute(sql)
        assert schema == cursor.fetch_arrow_table().schema
        with pytest.raises(adbc_driver_manager.Error, match="no_such"):
            cursor.adbc_execute_schema("SELECT no_such FROM connections")


def command(name, *texts):
    """A command of FlightSql.proto whose fields are texts, numbered from 1 as they are given; None: not set."""

    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    value = b"".join(field(number, text.encode()) for number, text in enumerate(texts, 1) if text is not None)
    url = f"type.googleapis.com/arrow.flight.protocol.sql.{name}"
    return flight.FlightDescriptor.for_command(field(1, url.encode()) + field(2, value))


KEYS = "pk_catalog_name: string, pk_db_schema_name: string, pk_table_name: string not null, "
KEYS += "pk_column_name: string not null, fk_catalog_name: string, fk_db_schema_name: string, "
KEYS += "fk_table_name: string not null, fk_column_name: string not null, key_sequence: int32 not null, "
KEYS += "fk_key_name: string, pk_key_name: string, update_rule: uint8 not null, delete_rule: uint8 not null"
PRIMARY = "catalog_name: string, db_schema_name: string, table_name: string not null, "
PRIMARY += "column_name: string not null, key_name: string, key_sequence: int32 not null"


@pytest.mark.parametrize(
    ("name", "texts", "schema"),
    [
        ("CommandGetPrimaryKeys", (None, None, "connections"), PRIMARY),
        ("CommandGetExportedKeys", (None, None, "connections"), KEYS),
        ("CommandGetImportedKeys", (None, None, "connections"), KEYS),
        ("CommandGetCrossReference", (None, None, "connections", None, None, "blocks"), KEYS),
    ],
)
def test_there_are_no_keys_and_that_is_an_answer(server, name, texts, schema):
    """Tables without rows, with the columns of the standard, through a client that is no Flight SQL driver."""
    with flight.FlightClient(server) as client:
        asked = command(name, *texts)
        info = client.get_flight_info(asked)
        table = client.do_get(info.endpoints[0].ticket).read_all()
        assert ", ".join(map(text_of, table.schema)) == schema
        assert client.get_schema(asked).schema == info.schema == table.schema
        assert table.num_rows == 0


def text_of(field):
    return f"{field.name}: {field.type}{'' if field.nullable else ' not null'}"


def test_types_are_those_of_the_columns(server, connection):
    """Every type that the store has and that has a number, by the names that SQL takes."""
    with flight.FlightClient(server) as client:
        asked = command("CommandGetXdbcTypeInfo")
        info = client.get_flight_info(asked)
        table = client.do_get(info.endpoints[0].ticket).read_all()
        assert client.get_schema(asked).schema == table.schema == info.schema
        timestamps = flight.FlightDescriptor.for_command(asked.command[:-2] + bytes([0x12, 2, 0x08, 93]))
        some = client.do_get(client.get_flight_info(timestamps).endpoints[0].ticket).read_all()
    assert some["type_name"].to_pylist() == ["TIMESTAMP"]
    kinds = set()
    for name in table["type_name"].to_pylist():
        with connection.cursor() as cursor:
            kinds.add(str(cursor.adbc_execute_schema(f"SELECT CAST(NULL AS {name}) AS value").field(0).type))
    tables = connection.adbc_get_objects(depth="tables").read_all().to_pylist()[0]["catalog_db_schemas"][0]
    stored = set()
    for table in tables["db_schema_tables"]:
        stored |= {str(field.type) for field in connection.adbc_get_table_schema(table["table_name"])}
    plain = {kind.replace(", tz=UTC", "").replace("string_view", "string") for kind in stored if "<" not in kind}
    assert plain <= {kind.replace("string_view", "string") for kind in kinds}, (plain, kinds)


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


def test_long_expressions_are_answered_and_longer_texts_refused(connection):
    assert ask(connection, "SELECT " + "+".join(["1"] * 1000)) == [(1000,)]
    for deep in ["+".join(["1"] * 1002), "(" * 1001 + "1" + ")" * 1001, " OR ".join(["1 = 2"] * 600)]:
        with pytest.raises(adbc_driver_manager.Error, match="operators and brackets, and may have 1000"):
            ask(connection, "SELECT " + deep)
    ids = ",".join(map(str, range(20000)))
    assert ask(connection, f"SELECT count(*) FROM connections WHERE id IN ({ids})") == [(CONNECTIONS,)]
    with pytest.raises(adbc_driver_manager.Error, match="may have 1048576"):
        ask(connection, "SELECT '" + "x" * (1 << 20) + "'")
    assert ask(connection, "SELECT 1") == [(1,)]


def test_the_python_client_asks_without_a_warning(server):
    # Of the package only this: the rest needs its generated messages.
    spec = importlib.util.spec_from_file_location("client", ROOT / "host" / "python" / "weir" / "sql.py")
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = client.query("SELECT count(*) AS n FROM connections", server.removeprefix("grpc://"))
    assert table["n"].to_pylist() == [CONNECTIONS]
