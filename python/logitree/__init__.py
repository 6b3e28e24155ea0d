"""Decides an LLM's next token."""
