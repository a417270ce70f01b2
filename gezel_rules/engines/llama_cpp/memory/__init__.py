"""Memory of a launch, to the byte: pure arithmetic on a GGUF header's geometry. No input or output here."""
