"""Ask a Weir daemon.

>>> import weir
>>> with weir.connect("127.0.0.1:50051") as daemon:
...     for connection in daemon.connections("server_to_client.lost_upstream > 0"):
...         print(connection.client.address, connection.server_to_client.lost_upstream)
"""

from weir.client import DEFAULT_ADDRESS, Daemon, WeirError, connect
from weir.sql import DEFAULT_SQL_ADDRESS, query

__all__ = ["DEFAULT_ADDRESS", "DEFAULT_SQL_ADDRESS", "Daemon", "WeirError", "connect", "query"]
