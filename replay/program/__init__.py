"""The user's own program, run again against a recording: handed over, installed in its processes, watched, judged."""
