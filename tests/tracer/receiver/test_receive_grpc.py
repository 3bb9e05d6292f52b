"""OTLP over gRPC, spoken with the gRPC library itself: names, limits, packed messages, several calls at once."""

from __future__ import annotations

import gzip
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from looptape.tracer.receiver.grpc import PATHS, GrpcSide
from looptape.tracer.receiver.refusal import MAX_BODY
from receiving import raw, receiver

TRACES = next(path for path, signal in PATHS.items() if signal == "traces")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with receiver(tmp_path_factory.mktemp("home")) as receiving:
        yield receiving


def channel(receiving, **options):
    return grpc.insecure_channel(f"127.0.0.1:{receiving.grpc}", options=list(options.items()))


def request(count=1, *, size=0, first=1):
    made = trace_service_pb2.ExportTraceServiceRequest()
    scope = made.resource_spans.add().scope_spans.add()
    for number in range(first, first + count):
        span = scope.spans.add(
            name=f"span {number}", trace_id=number.to_bytes(16, "big"), span_id=number.to_bytes(8, "big")
        )
        span.attributes.add(key="gen_ai.input.messages").value.string_value = "x" * size
    return made


def bare(receiving, data, path=TRACES, **options):
    """A call with these octets as its message."""
    same = lambda octets: octets  # noqa: E731
    with channel(receiving, **options) as open_channel:
        return open_channel.unary_unary(path, request_serializer=same, response_deserializer=same)(data, timeout=60)


def refusal(receiving, data, path=TRACES, **options):
    with pytest.raises(grpc.RpcError) as caught:
        bare(receiving, data, path, **options)
    return caught.value.code(), caught.value.details()


def test_calls_of_several_clients_at_once_are_all_kept(tmp_path):
    with receiver(tmp_path) as receiving:

        def client(number):
            with channel(receiving) as one:
                stub = trace_service_pb2_grpc.TraceServiceStub(one)
                calls = [stub.Export.future(request(first=100 * number + i, size=1000)) for i in range(10)]
                return [call.result(timeout=60) for call in calls]

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(client, range(1, 5)))
        assert len(raw(tmp_path)) == 40


def test_what_was_acknowledged_is_kept_when_it_stops_while_clients_send(tmp_path):
    kept, flowing = set(), threading.Event()

    def grpc_client(number):
        with channel(receiving) as one:
            stub = trace_service_pb2_grpc.TraceServiceStub(one)
            for trace in range(number, number + 100_000):
                stub.Export(request(first=trace, size=1000), timeout=60)
                acknowledged(trace)

    def http_client(number):
        for trace in range(number, number + 100_000):
            answer = receiving.post(request(first=trace).SerializeToString(), kind="application/x-protobuf")
            if answer[0] == 200:
                acknowledged(trace)

    def acknowledged(trace):
        kept.add(trace)
        if len(kept) > 60:
            flowing.set()

    with receiver(tmp_path) as receiving, ThreadPoolExecutor(4) as pool:
        sending = [pool.submit((grpc_client, http_client)[i % 2], 1_000_000 * (i + 1)) for i in range(4)]
        assert flowing.wait(60)
        code, err = receiving.stop()
        ends = [type(client.exception(timeout=120)) for client in sending]
    assert (code, "Traceback" in err) == (0, False)
    assert all(issubclass(end, grpc.RpcError | OSError | http.client.HTTPException) for end in ends), ends
    assert kept <= {int(item["traceId"], 16) for item in raw(tmp_path)}


def test_a_large_message_passes_the_flow_control(tmp_path):
    with receiver(tmp_path) as receiving, channel(receiving) as one:
        stub = trace_service_pb2_grpc.TraceServiceStub(one)
        stub.Export(request(3, size=5 << 20), timeout=60)
        stub.Export(request(2, size=5 << 20, first=10), timeout=60, compression=grpc.Compression.Gzip)
        assert len(raw(tmp_path)) == 5


def test_logs_and_metrics_have_their_services(shared):
    path = next(p for p, signal in PATHS.items() if signal == "logs")
    made = logs_service_pb2.ExportLogsServiceRequest()
    made.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1)
    assert bare(shared, made.SerializeToString(), path) == b""
    with channel(shared) as one:
        metrics_service_pb2_grpc.MetricsServiceStub(one).Export(
            metrics_service_pb2.ExportMetricsServiceRequest(), timeout=60
        )


def test_spans_without_ids_are_counted_back(shared):
    made = request()
    made.resource_spans[0].scope_spans[0].spans.add(name="no ids")
    said = trace_service_pb2.ExportTraceServiceResponse.FromString(bare(shared, made.SerializeToString()))
    assert said.partial_success.rejected_spans == 1
    assert "trace id" in said.partial_success.error_message


def test_a_foreign_authority_is_refused(shared):
    code, said = refusal(shared, b"", **{"grpc.default_authority": "evil.invalid"})
    assert code == grpc.StatusCode.PERMISSION_DENIED
    assert "loopback" in said


def test_what_is_too_large_is_refused_also_when_it_is_packed(shared):
    limits = {"grpc.max_send_message_length": -1}
    assert refusal(shared, bytes(MAX_BODY + 1), **limits)[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
    with channel(shared, **limits) as one:
        call = one.unary_unary(TRACES, request_serializer=bytes, response_deserializer=bytes)
        with pytest.raises(grpc.RpcError) as caught:
            call(bytes(MAX_BODY + 1), timeout=60, compression=grpc.Compression.Gzip)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "64 MB" in caught.value.details()


def test_what_is_no_export_is_refused(shared):
    assert refusal(shared, b"\x0a\xff")[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert refusal(shared, b"", "/some.Service/Method")[0] == grpc.StatusCode.UNIMPLEMENTED
    assert refusal(shared, gzip.compress(b"x"), TRACES + "x")[0] == grpc.StatusCode.UNIMPLEMENTED


def test_after_a_refusal_the_same_connection_serves_on(shared):
    with channel(shared) as one:
        stub = trace_service_pb2_grpc.TraceServiceStub(one)
        with pytest.raises(grpc.RpcError):
            one.unary_unary("/some.Service/Method")(b"x" * 100_000, timeout=60)
        stub.Export(request(first=77), timeout=60)


def test_a_client_that_says_goodbye_and_one_thing_more_in_a_breath_is_no_stranger():
    class Intake:
        strays = []

        def stray(self, text):
            self.strays.append(text)

    class Transport:
        closed = False

        def write(self, data):
            pass

        def is_closing(self):
            return self.closed

        def close(self):
            self.closed = True

    client, transport = H2Connection(H2Configuration(client_side=True)), Transport()
    client.initiate_connection()
    connection = GrpcSide(Intake(), None, None, ())()
    connection.connection_made(transport)
    connection.data_received(client.data_to_send())
    client.ping(b"12345678")
    ping = client.data_to_send()
    client.close_connection()
    connection.data_received(client.data_to_send() + ping)
    assert (transport.closed, Intake.strays) == (True, [])
