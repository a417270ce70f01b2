"""What maintainers use: a whole directory checked at once, and policies shown in readable form."""
