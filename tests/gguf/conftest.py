"""Real headers for these tests."""

from real_headers import header_bytes, header_index, real_model, sparse  # noqa: F401
