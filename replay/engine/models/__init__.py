"""Who answers in the built-in loop: a recording, a script, Anthropic or an OpenAI-compatible server."""
