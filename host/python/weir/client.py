"""The services of a daemon over gRPC, as iterators of messages."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from weir.v1 import (
    analysis_pb2,
    analysis_service_pb2,
    appliance_service_pb2,
    capture_service_pb2,
    flow_service_pb2,
    record_service_pb2,
)

DEFAULT_ADDRESS = "127.0.0.1:50051"
"""Where `weir serve` listens unless told otherwise."""

PAGE = 1000
"""Rows that are fetched at a time."""

_MAX_MESSAGE = 64 << 20
"""Room for a page of connections or of 65,536 records, bytes."""

_PIECE = 1 << 20
"""Bytes of a capture that are sent at a time."""

_Answer = TypeVar("_Answer", bound=Message)
_AnswerOf = TypeVar("_AnswerOf", bound=Message, covariant=True)
_Row = TypeVar("_Row")


class WeirError(Exception):
    """What a daemon refused, or why it could not be asked."""

    def __init__(self, message: str, code: grpc.StatusCode) -> None:
        super().__init__(message)
        self.code = code
        """gRPC status code: INVALID_ARGUMENT for a wrong filter, UNAVAILABLE when no daemon is there."""

    def __reduce__(self) -> tuple[type[WeirError], tuple[str, grpc.StatusCode]]:
        # Exceptions are made again from `args`, which have no code: a process of a pool could not tell its error.
        return type(self), (str(self), self.code)


class _Parsed(Protocol[_AnswerOf]):
    """A class of messages."""

    def FromString(self, data: bytes, /) -> _AnswerOf: ...  # noqa: N802 (the name is the library's)


class _Call(Protocol[_AnswerOf]):
    """A stream of answers."""

    def __iter__(self) -> Iterator[_AnswerOf]: ...

    def cancel(self) -> object: ...


class Daemon:
    """A connection to a daemon; use it in a `with` statement, or close it.

    Filters follow AIP-160 (docs/src/filter.md): `server.port = 443 AND setup.outcome = IGNORED`; orders are fields by commas:
    `server.port, duration_seconds desc`.
    Messages are those of weir.v1; `HasField` tells what is known, as a count of 0 is a count.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        timeout: float = 60.0,
        *,
        token: str | None = None,
        tls: bool = False,
        ca: str | os.PathLike[str] | None = None,
    ) -> None:
        """Connect to `address` (HOST:PORT); a call that is no stream fails after `timeout` seconds.

        `token`: of a daemon with `--token-file`. `tls`: of one with `--tls-cert`, which is checked against the system's
        roots, or against those of the PEM file `ca` (no need for `tls` then).
        """
        self._timeout = timeout
        self._metadata: tuple[tuple[str, str | bytes], ...] | None = None
        if token:
            self._metadata = (("authorization", f"Bearer {token}"),)
        options = [("grpc.max_receive_message_length", _MAX_MESSAGE)]
        if tls or ca is not None:
            roots = None if ca is None else Path(ca).read_bytes()
            self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(roots), options=options)
        else:
            self._channel = grpc.insecure_channel(address, options=options)

    def __enter__(self) -> Daemon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; streams that are open end with it."""
        self._channel.close()

    # What the analysis knows.

    def connections(self, filter: str = "", order_by: str = "") -> Iterator[analysis_pb2.Connection]:
        """TCP connections, in the order in which they were first seen if none is asked for."""
        yield from self._pages(
            "ListConnections",
            flow_service_pb2.ListConnectionsResponse,
            lambda token: flow_service_pb2.ListConnectionsRequest(
                filter=filter, order_by=order_by, page_size=PAGE, page_token=token
            ),
            lambda page: (page.connections, page.next_page_token),
        )

    def connection(self, id: int) -> tuple[analysis_pb2.Connection, list[analysis_pb2.Transaction]]:
        """One connection by its id, and its transactions by index (0 is the setup)."""
        answer = self._ask(
            "weir.v1.FlowService/GetConnection",
            flow_service_pb2.GetConnectionRequest(id=id),
            flow_service_pb2.GetConnectionResponse,
        )
        return answer.connection, list(answer.transactions)

    def transactions(self, filter: str = "", order_by: str = "") -> Iterator[analysis_pb2.Transaction]:
        """Setups, requests with their responses, and closes; times in seconds."""
        yield from self._pages(
            "ListTransactions",
            flow_service_pb2.ListTransactionsResponse,
            lambda token: flow_service_pb2.ListTransactionsRequest(
                filter=filter, order_by=order_by, page_size=PAGE, page_token=token
            ),
            lambda page: (page.transactions, page.next_page_token),
        )

    def segments(self, filter: str = "", order_by: str = "") -> Iterator[analysis_pb2.Segment]:
        """Segments that came twice, late or never: what they were, why, and where a packet was lost."""
        yield from self._pages(
            "ListSegments",
            flow_service_pb2.ListSegmentsResponse,
            lambda token: flow_service_pb2.ListSegmentsRequest(
                filter=filter, order_by=order_by, page_size=PAGE, page_token=token
            ),
            lambda page: (page.segments, page.next_page_token),
        )

    def packets(self, connection_id: int) -> Iterator[analysis_pb2.PacketRow]:
        """Packets of a connection, where the daemon's log has them (`weir serve --digests`)."""
        yield from self._pages(
            "ListPackets",
            flow_service_pb2.ListPacketsResponse,
            lambda token: flow_service_pb2.ListPacketsRequest(
                connection_id=connection_id, page_size=10 * PAGE, page_token=token
            ),
            lambda page: (page.packets, page.next_page_token),
        )

    def findings(self, filter: str = "", order_by: str = "") -> Iterator[analysis_pb2.Finding]:
        """What an expert would point out, with evidence and confidence."""
        yield from self._pages(
            "ListFindings",
            flow_service_pb2.ListFindingsResponse,
            lambda token: flow_service_pb2.ListFindingsRequest(
                filter=filter, order_by=order_by, page_size=PAGE, page_token=token
            ),
            lambda page: (page.findings, page.next_page_token),
        )

    def summary(self) -> analysis_pb2.Summary:
        """The whole in figures: packets, rates, load phases, tiers, statistics per signature."""
        request = flow_service_pb2.GetSummaryRequest()
        answer = self._ask("weir.v1.FlowService/GetSummary", request, flow_service_pb2.GetSummaryResponse)
        return answer.summary

    def timeline(self, start: datetime | None = None, end: datetime | None = None) -> list[analysis_pb2.TimeSlice]:
        """What happened when, in slices of a second, of the last minutes: those that begin from `start` on and before `end`.

        Times without a zone are UTC, whatever the clock of this machine shows.
        """
        request = flow_service_pb2.GetTimelineRequest(start_time=start, end_time=end)
        answer = self._ask("weir.v1.FlowService/GetTimeline", request, flow_service_pb2.GetTimelineResponse)
        return list(answer.slices)

    # Captures of one's own.

    def analyze(
        self,
        *captures: str | os.PathLike[str],
        bandwidth: float | None = None,
        latency: float | None = None,
        timeline: float | None = None,
        segments: bool = False,
    ) -> analysis_pb2.Analysis:
        """What `weir analyze` says of a capture file, or of several of one path; the daemon gets all bytes of them.

        `bandwidth` of the path in bits a second, `latency` in seconds one way, `timeline` in slices of so many seconds. A capture that cannot be read to its
        end is a warning: what came before is in the answer.
        """
        options = analysis_service_pb2.AnalyzeOptions(
            bandwidth_bits_per_second=bandwidth, latency_seconds=latency, timeline_seconds=timeline, segments=segments
        )
        pieces = _pieces(captures)

        def requests() -> Iterator[Message]:
            yield analysis_service_pb2.AnalyzeCapturesRequest(options=options)
            for piece in pieces:
                yield analysis_service_pb2.AnalyzeCapturesRequest(piece=piece)

        whole = analysis_pb2.Analysis()
        for answer in self._send("AnalyzeCaptures", requests(), analysis_service_pb2.AnalyzeCapturesResponse):
            whole.MergeFrom(answer.part)
            _warn(answer.warnings)
        return whole

    def compare(self, first: str | os.PathLike[str], second: str | os.PathLike[str]) -> analysis_pb2.Comparison:
        """What differs between two capture files, as `weir compare` says."""
        pieces = _pieces((first, second))
        requests = (analysis_service_pb2.CompareCapturesRequest(piece=piece) for piece in pieces)
        whole = analysis_pb2.Comparison()
        for answer in self._send("CompareCaptures", requests, analysis_service_pb2.CompareCapturesResponse):
            whole.MergeFrom(answer.comparison)
            _warn(answer.warnings)
        return whole

    # What happens.

    def watch_findings(self, filter: str = "") -> Iterator[flow_service_pb2.WatchFindingsResponse]:
        """Findings that are open, a `sync` marker, then each that opens, changes or closes; without end.

        After a `gap` forget what was open: it comes again, with another marker.
        """
        request = flow_service_pb2.WatchFindingsRequest(filter=filter)
        return self._stream("weir.v1.FlowService/WatchFindings", request, flow_service_pb2.WatchFindingsResponse)

    def watch_connections(self, filter: str = "") -> Iterator[flow_service_pb2.WatchConnectionsResponse]:
        """Connections that are known, a `sync` marker, then each again whenever it changed; without end.

        One that does not match the filter any more is told as `left`.
        """
        request = flow_service_pb2.WatchConnectionsRequest(filter=filter)
        return self._stream("weir.v1.FlowService/WatchConnections", request, flow_service_pb2.WatchConnectionsResponse)

    def events(self, after: int = 0, follow: bool = False) -> Iterator[appliance_service_pb2.Event]:
        """What happened to the appliance and its card, behind event number `after`; with `follow`, without end."""
        request = appliance_service_pb2.WatchEventsRequest(after=after, follow=follow)
        responses = self._stream(
            "weir.v1.ApplianceService/WatchEvents", request, appliance_service_pb2.WatchEventsResponse
        )
        return (response.event for response in responses)

    def records(
        self, resume_token: str = "", stop_at_end: bool = True
    ) -> Iterator[record_service_pb2.SubscribeResponse]:
        """Flow records as the engine wrote them, 64 bytes each (docs/src/records.md), in batches.

        Give the `resume_token` of the last batch that was handled to get every record exactly once.
        """
        request = record_service_pb2.SubscribeRequest(resume_token=resume_token, stop_at_end=stop_at_end)
        return self._stream("weir.v1.RecordService/Subscribe", request, record_service_pb2.SubscribeResponse)

    # The appliance.

    def status(self) -> appliance_service_pb2.GetStatusResponse:
        """The daemon, its log and its card."""
        request = appliance_service_pb2.GetStatusRequest()
        return self._ask("weir.v1.ApplianceService/GetStatus", request, appliance_service_pb2.GetStatusResponse)

    def capture(self) -> capture_service_pb2.GetCaptureStatusResponse:
        """Counters of the ports: received, dropped, in no flow."""
        request = capture_service_pb2.GetCaptureStatusRequest()
        return self._ask(
            "weir.v1.CaptureService/GetCaptureStatus", request, capture_service_pb2.GetCaptureStatusResponse
        )

    # How it is asked. The messages are typed, the modules of services that gRPC generates are not: calls go by name.

    def _ask(self, method: str, request: Message, answer: _Parsed[_Answer]) -> _Answer:
        call = self._channel.unary_unary(
            f"/{method}", request_serializer=_bytes, response_deserializer=answer.FromString
        )
        try:
            return call(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise _told(error) from error

    def _stream(self, method: str, request: Message, answer: _Parsed[_Answer]) -> Iterator[_Answer]:
        call = self._channel.unary_stream(
            f"/{method}", request_serializer=_bytes, response_deserializer=answer.FromString
        )
        return self._all(call(request, metadata=self._metadata))

    def _send(self, method: str, requests: Iterator[Message], answer: _Parsed[_Answer]) -> Iterator[_Answer]:
        # A single answer comes as a stream of one.
        call = self._channel.stream_stream(
            f"/weir.v1.AnalysisService/{method}", request_serializer=_bytes, response_deserializer=answer.FromString
        )
        return self._all(call(requests, metadata=self._metadata))

    @staticmethod
    def _all(stream: _Call[_Answer]) -> Iterator[_Answer]:
        try:
            yield from stream
        except grpc.RpcError as error:
            raise _told(error) from error
        finally:
            stream.cancel()

    def _pages(
        self,
        method: str,
        answer: _Parsed[_Answer],
        request: Callable[[str], Message],
        rows: Callable[[_Answer], tuple[Iterable[_Row], str]],
    ) -> Iterator[_Row]:
        token = ""
        while True:
            page, token = rows(self._ask(f"weir.v1.FlowService/{method}", request(token), answer))
            yield from page
            if not token:
                return


def connect(
    address: str = DEFAULT_ADDRESS,
    timeout: float = 60.0,
    *,
    token: str | None = None,
    tls: bool = False,
    ca: str | os.PathLike[str] | None = None,
) -> Daemon:
    """A connection to the daemon at `address` (HOST:PORT); options as of `Daemon`."""
    return Daemon(address, timeout, token=token, tls=tls, ca=ca)


def _pieces(captures: Sequence[str | os.PathLike[str]]) -> Iterator[analysis_service_pb2.CapturePiece]:
    # Here, as an error while they are sent would be told as gRPC's.
    with ExitStack() as opened:
        files = [(os.fspath(capture), opened.enter_context(open(capture, "rb"))) for capture in captures]
        for _, file in files:
            file.peek(1)
        kept = opened.pop_all()
    return _read(files, kept)


def _read(files: list[tuple[str, BufferedReader]], kept: ExitStack) -> Iterator[analysis_service_pb2.CapturePiece]:
    with kept:
        for name, file in files:
            # A name of a file may be no text.
            begin = analysis_service_pb2.CaptureBegin(name=os.fsencode(name).decode(errors="replace"))
            yield analysis_service_pb2.CapturePiece(begin=begin)
            while data := file.read(_PIECE):
                yield analysis_service_pb2.CapturePiece(data=data)


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        warnings.warn(text, stacklevel=3)


def _bytes(message: Message) -> bytes:
    return message.SerializeToString()


def _told(error: grpc.RpcError) -> WeirError:
    if isinstance(error, grpc.Call):
        return WeirError(error.details() or "the daemon gave no reason", error.code())
    return WeirError(str(error), grpc.StatusCode.UNKNOWN)
