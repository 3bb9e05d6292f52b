"""A program with the real OpenTelemetry SDK and exporter: sends a two-turn loop as GenAI spans. Run as a process."""

import json
import sys

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


def exporter(protocol, url, compression):
    if protocol == "grpc":
        from grpc import Compression
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        kind = Compression.Gzip if compression == "gzip" else Compression.NoCompression
        return GrpcExporter(endpoint=url, insecure=True, compression=kind)
    from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=url + "/v1/traces", compression=HttpCompression(compression))


def chat(tracer, asked, parts, number):
    with tracer.start_as_current_span("chat m-1") as span:
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "anthropic",
                "gen_ai.request.model": "claude-sonnet-4-5",
                "gen_ai.response.id": f"msg_{number}",
                "gen_ai.usage.input_tokens": 10,
                "gen_ai.usage.output_tokens": 5,
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
            }
        )


def loop(tracer):
    """Asks, calls a tool whose result is long, answers; in one invoke_agent span."""
    call = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "revenue"}}
    asked = [{"role": "user", "parts": [{"type": "text", "content": "revenue?"}]}]
    with tracer.start_as_current_span("invoke_agent demo") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "demo"})
        chat(tracer, asked, [call], 1)
        with tracer.start_as_current_span("execute_tool search") as tool:
            tool.set_attributes(
                {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "c1"}
            )
        result = {"type": "tool_call_response", "id": "c1", "response": "7% " * 40_000}
        seen = [*asked, {"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [result]}]
        chat(tracer, seen, [{"type": "text", "content": "up 7%"}], 2)


if __name__ == "__main__":
    provider = TracerProvider(resource=Resource.create({"service.name": "demo-service"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter(*sys.argv[1:4])))
    loop(provider.get_tracer("demo.genai"))
    provider.shutdown()
