"""Parts of a launch that recovery may leave out, by policy's words in ``recovery_steps``."""

PACKED_WEIGHTS = "packed weights"
