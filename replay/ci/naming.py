"""Where the tape of a test lies: `tapes/MODULE/TEST.tape.jsonl` beside its module. Imports nothing heavy."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ENDING = ".tape.jsonl"
FOLDER = "tapes"
_LONGEST = 120


def tape_of(module: Path, names: Iterable[str]) -> Path:
    """The tape of a test.

    Args:
        module: The file that the test stands in.
        names: The test's name with its classes before it, as pytest has them (`TestA`, `test_b[c]`).
    """
    return module.parent / FOLDER / module.stem / f"{safe('.'.join(names))}{ENDING}"


def safe(name: str) -> str:
    """A name that every file system takes; two tests never get the same: what was changed is told apart by a hash."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")
    if plain == name and len(plain) <= _LONGEST:
        return plain
    return f"{plain[:_LONGEST].rstrip('-.')}-{hashlib.blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"


def stale(modules: Iterable[Path], whole: Iterable[Path], bound: Iterable[Path]) -> Iterator[Path]:
    """Tapes that no test is bound to.

    Args:
        modules: Test modules that were collected; tapes beside them whose module is gone are stale.
        whole: Those of them of which every test was collected; only they are judged.
        bound: The tapes of the tests that were collected.
    """
    known, judged = set(bound), set(whole)
    for folder in sorted({m.parent / FOLDER for m in modules}):
        if not folder.is_dir():
            continue
        for tape in sorted(folder.glob(f"*/*{ENDING}")):
            module = folder.parent / f"{tape.parent.name}.py"
            if tape not in known and (module in judged or not module.exists()):
                yield tape
