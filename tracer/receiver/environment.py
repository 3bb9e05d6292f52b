"""The lines that make programs send here, ready to paste into a shell; content is off by default everywhere."""

from __future__ import annotations


def lines(http_port: int, grpc_port: int | None = None) -> list[str]:
    """Shell lines, with the reason of each group as a comment."""
    url = f"http://127.0.0.1:{http_port}"
    return [
        "# any program with an OpenTelemetry SDK",
        f"export OTEL_EXPORTER_OTLP_ENDPOINT={url}",
        "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
        "export OTEL_TRACES_EXPORTER=otlp OTEL_LOGS_EXPORTER=otlp OTEL_METRICS_EXPORTER=none",
        *_grpc(grpc_port),
        "# what models and tools say: GenAI instrumentations (older ones want `true`), anthropic's own spans",
        "export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
        "export OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
        "export ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content",
        "# Claude Code",
        "export CLAUDE_CODE_ENABLE_TELEMETRY=1 CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1",
        "export OTEL_LOG_USER_PROMPTS=1 OTEL_LOG_ASSISTANT_RESPONSES=1 OTEL_LOG_RAW_API_BODIES=1",
        "export OTEL_LOG_TOOL_DETAILS=1 OTEL_LOG_TOOL_CONTENT=1",
        "# Codex: these go into ~/.codex/config.toml",
        "# [otel]",
        "# log_user_prompt = true",
        f'# exporter = {{ otlp-http = {{ endpoint = "{url}/v1/logs", protocol = "binary" }} }}',
        f'# trace_exporter = {{ otlp-http = {{ endpoint = "{url}/v1/traces", protocol = "binary" }} }}',
    ]


def _grpc(port: int | None) -> list[str]:
    if port is None:
        return []
    return [f"# (over gRPC: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{port} OTEL_EXPORTER_OTLP_PROTOCOL=grpc)"]
