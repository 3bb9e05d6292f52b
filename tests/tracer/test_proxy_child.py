"""The program behind the proxy: what is meant for it reaches it, however early it comes."""

import os
import shutil
import signal
import subprocess

from looptape.tracer.command import understand
from looptape.tracer.proxy import child


def test_a_ctrl_c_of_the_keyboard_reaches_a_program_that_was_not_there_yet_to_hear_it(monkeypatch):
    start = subprocess.Popen

    def interrupted(*arguments, **more):
        signal.raise_signal(signal.SIGINT)
        return start(*arguments, **more)

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    monkeypatch.setattr(child, "_from_keyboard", lambda: True)
    sleeping = understand(shutil.which("sleep"), ("sleep", "20"))
    assert child.run(sleeping, dict(os.environ)) == 128 + signal.SIGINT
