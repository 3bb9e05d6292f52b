"""Programs under `looptape record`: written into a folder, run to their end, and what the store has of them."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from looptape.tracer.store import Filter, open_store

LAUNCH = [
    sys.executable,
    "-P",
    "-c",
    "import sys; from looptape.tracer.inject import launch; sys.exit(launch(sys.argv[1:]))",
]
CLI = [sys.executable, "-P", "-m", "looptape.tui.cli", "record", "--"]

ASK = """
import json, os, sys, urllib.request
def ask(url, question="hi"):
    body = {"model": "m-1", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
    return HTTP(url + "/v1/messages", body)
"""
INSIDE = (
    """
import importlib
def HTTP(url, body):
    try: library = importlib.import_module("httpx2")
    except ImportError: library = importlib.import_module("httpx")
    return library.post(url, json=body, headers={"x-api-key": KEY}, timeout=60).json()["content"][0]["text"]
KEY = "canary-" + "0123456789abcdef"
"""
    + ASK
)
"""For programs that are recorded in their own process: model calls over the HTTP library of the SDK."""
BESIDE = (
    """
KEY = "canary-" + "0123456789abcdef"
def HTTP(url, body):
    headers = {"content-type": "application/json", "x-api-key": KEY}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return json.loads(urllib.request.urlopen(request).read())["content"][0]["text"]
"""
    + ASK
)
"""For programs that only the proxy can see: nothing but the standard library."""


@dataclass
class Launcher:
    """A folder to run programs in, and the store directory they record into."""

    work: Path
    home: Path
    url: str

    def write(self, name, text, mode=0o644):
        file = self.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def environment(self, **more):
        """As a shell would have it, the model server named as the place to go."""
        return {**os.environ, "LOOPTAPE_HOME": str(self.home), "ANTHROPIC_BASE_URL": self.url, **more}

    def start(self, *command, by=LAUNCH, cwd=None, **more):
        """The running process, its streams as pipes."""
        return subprocess.Popen(
            [*by, *map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd or self.work,
            env=self.environment(**more),
        )

    def run(self, *command, stdin="", **more):
        """Exit code, stdout, stderr."""
        process = self.start(*command, **more)
        out, err = process.communicate(stdin, timeout=60)
        return process.returncode, out, err

    def recorded(self):
        """(name, source, status, turns) of every run, sorted."""
        with open_store(self.home) as store:
            runs = store.runs(Filter(limit=0, include_empty=True))
            return sorted((r.name, r.source, r.status, r.turns) for r in runs)
