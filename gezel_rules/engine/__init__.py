"""The pure engine: policies over facts → decisions that explain themselves. No clock, environment, random or I/O."""
