"""`looptape receive`: OTLP from any program into the store, while it runs."""

from __future__ import annotations

import sys

import click

from .. import format as fmt
from .. import report
from .options import json_option


@click.command("receive")
@click.option(
    "--http-port", type=click.IntRange(0, 65535), default=4318, show_default=True, help="Port for HTTP; 0: any."
)
@click.option(
    "--grpc-port", type=click.IntRange(0, 65535), default=4317, show_default=True, help="Port for gRPC; 0: any."
)
@click.option("--no-grpc", is_flag=True, help="HTTP only.")
@click.option("--forward", metavar="URL", help="Pass everything on, unchanged, to this OTLP/HTTP endpoint.")
@click.option("--allow-host", metavar="NAME", multiple=True, help="A further name that requests may be addressed to.")
@json_option
def command(
    http_port: int, grpc_port: int, no_grpc: bool, forward: str | None, allow_host: tuple[str, ...], as_json: bool
) -> None:
    """Receive OpenTelemetry traces and logs (OTLP) on loopback and print the environment lines to paste."""
    from ...tracer.receiver import Addresses, Options, environment_lines, serve

    options = Options(http_port, None if no_grpc else grpc_port, forward, tuple(h.lower() for h in allow_host))

    def ready(at: Addresses) -> None:
        where = f"http://127.0.0.1:{at.http_port} (HTTP)"
        if at.grpc_port is not None:
            where += f" and 127.0.0.1:{at.grpc_port} (gRPC)"
        text = environment_lines(at.http_port, at.grpc_port)
        if as_json:
            report.data({"http_port": at.http_port, "grpc_port": at.grpc_port, "environment": text})
        else:
            for row in text:
                report.out(row)
        sys.stdout.flush()
        report.note(f"receiving OTLP on {where}; ctrl+c ends it")

    totals = serve(options, say=report.note, ready=ready)
    report.progress("")
    got = (
        f"received {fmt.counted(totals.items['traces'], 'span')} and {fmt.counted(totals.items['logs'], 'log record')}"
    )
    report.note(f"{got} in {fmt.counted(totals.requests, 'request')}; `looptape runs` shows what they tell")
    if totals.rejected or totals.refused:
        spans = fmt.counted(totals.rejected, "span")
        report.note(f"{fmt.counted(totals.refused, 'request')} refused, {spans} without usable ids")
    if forward:
        report.note(f"passed on: {totals.forwarded}, failed: {totals.not_forwarded}")
