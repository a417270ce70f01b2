"""Declarative rules for launching local language models."""

__version__ = "0.1.0"

DEFAULT_FAMILY = "llama-cpp"
"""The engine family of an entry, a host or a log that names none."""
