"""Effects on the machine: engines started, watched and stopped; what is remembered about them."""
