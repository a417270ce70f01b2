"""The expression language of policies: a small, typed subset of Python's expressions.

parse → check → evaluate. Nothing here knows about policies, files or engines.
"""
