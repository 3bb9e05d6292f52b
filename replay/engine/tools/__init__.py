"""Who runs the tools in the built-in loop, and how a call is checked, run, retried and told to the model."""
