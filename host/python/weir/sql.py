"""SQL over what a daemon or a store knows, through Arrow Flight SQL; needs the extra `sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

DEFAULT_SQL_ADDRESS = "127.0.0.1:50052"
"""Where Flight SQL is served unless told otherwise."""


def query(sql: str, address: str = DEFAULT_SQL_ADDRESS) -> pyarrow.Table:
    """The answer to a query as an Arrow table: `query("SELECT count(*) FROM connections")`."""
    try:
        from adbc_driver_flightsql import dbapi
    except ImportError as error:
        raise ImportError("SQL needs ADBC and Arrow: pip install 'weir-client[sql]'") from error
    # There is nothing to commit: the server only reads, and its driver warns of transactions.
    with dbapi.connect(f"grpc://{address}", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()
