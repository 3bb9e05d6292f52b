"""`python -m looptape.tui.cli`: the command line where the script is not on PATH."""

from . import main

main()
