"""GGUF headers: what a model file says about itself, read in milliseconds without touching a weight.

``read_header`` is the way in; everything in a header is untrusted, so every fault is a one-line ``BadInput``.
The `gguf` package's ``GGUFReader`` takes seconds on a large vocabulary: it is the oracle of the tests, not the reader.
"""

from gezel_rules.gguf.files import read_header
from gezel_rules.gguf.records import Array, Header, Tensor

__all__ = ["Array", "Header", "Tensor", "read_header"]
