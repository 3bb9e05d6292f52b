"""Codex CLI: rollout files, old and new."""
