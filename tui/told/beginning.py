"""What an empty store can begin with: sessions found on this machine, the demo, a program of one's own."""

from __future__ import annotations

from .. import format as fmt


def beginnings() -> list[str]:
    """What to say of each, a line or two."""
    from ..data.sessions import found

    lines = []
    folders = found()
    if folders:
        programs = [
            f"{fmt.counted(len(f.files), f'{f.program} session file')} in {f.path} ({fmt.size(f.octets)})"
            for f in folders
        ]
        lines.append("found " + "; ".join(programs))
        given = " ".join(dict.fromkeys(f.option for f in folders))
        lines.append(f"looptape import {given} brings them in and keeps them in step")
    lines.append("looptape demo records sample loops: no key, no network")
    lines.append("looptape record -- python agent.py records a program of yours")
    return lines
