"""The engine's log read by patterns: a verdict on the GPU, and the class of a failure. Pure."""
