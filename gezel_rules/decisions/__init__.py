"""Judging a policy set on facts: decisions, their traces, and the words that explain them. Pure."""
