"""Declarative rules for launching local language models."""

__version__ = "0.1.0"
