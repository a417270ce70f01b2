"""Decisions → plan: facts are gathered, memory arithmetic is lent to the policies, argv is put together."""
