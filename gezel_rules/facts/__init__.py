"""What is true of models, machines and engines: plain JSON facts with their provenance."""
