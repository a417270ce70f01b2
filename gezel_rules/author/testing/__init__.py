"""Tests that lie beside policies: read, run, and held against the rules they are to cover."""
