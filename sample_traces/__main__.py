"""`python -m looptape.sample_traces` makes the sample tapes again; with --check it only says which would change."""

from __future__ import annotations

import sys
from pathlib import Path

from . import faults
from .taping import make


def main(arguments: list[str]) -> int:
    """Writes what changed beside this file. 0 when nothing had to (with --check: would have to), else 1 with --check."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m looptape.sample_traces [--check]", file=sys.stderr)
        return 2
    folder = Path(__file__).parent
    changed = 0
    for name, data in {**make(), **faults.make()}.items():
        file = folder / name
        if file.exists() and file.read_bytes() == data:
            continue
        changed += 1
        if not arguments:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data)
        print(f"{'would change' if arguments else 'wrote'} {name} ({len(data) / 1024:.0f} KB)")
    print(f"{changed} of {len(list(folder.rglob('*.jsonl')))} tapes changed")
    return 1 if changed and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
