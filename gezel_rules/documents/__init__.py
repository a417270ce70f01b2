"""Files that people write: YAML with places, block scalars, what a mapping must look like."""
