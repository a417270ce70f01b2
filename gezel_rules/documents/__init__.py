"""Files that people write: YAML with places and block scalars; what a file may hold, declared and read."""
