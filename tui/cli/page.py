"""The app process behind one page of the browser: started by the server, spoken to over its stdin and stdout.

``python -m looptape.tui.cli.page [RUN]``
"""

from __future__ import annotations

import contextlib
import os
import sys

from .. import report


def main(argv: list[str]) -> int:
    """Open the app where the page's server listens; the exit status."""
    os.environ["TEXTUAL_DRIVER"] = f"{__package__.rpartition('.')[0]}.web.driver:Driver"
    for name in ("TMUX", "STY"):  # the server's terminal may be one of these; the page is not
        os.environ.pop(name, None)
    with contextlib.redirect_stdout(sys.stderr):  # stdout is the line to the server: whatever else speaks, speaks there
        return report.guard(lambda: _open(argv[0] if argv else None))


def _open(run: str | None) -> int:
    from .tui import open_screen

    return open_screen(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
