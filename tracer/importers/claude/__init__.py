"""Claude Code: session files with their sub-agents, and raw API bodies."""
