"""Patterns that are known to explode."""

from __future__ import annotations

EXPLODING = (
    r"(?:a|aa)+$", r"(?:aa?)+c", r"(x{1,12}){1,12}y", r".*.*.*y", r"(?:a?){30}a{30}", r"(a+)+$", r"(a*)*b", r"(a|a)*b",
    r"(a|b|ab)*c", r"([a-z]+)*:$", r"(?:\w+\s?)*:$", r"(?:a{2,}){2,}b", r"((a{2,}){2,})c", r"(.*a){12}b",
    r"(?:.*,){11}P", r"^(\w+\s?)*$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(\d+)*x", r"(?:\d|\d\d|\d{3})+x", r"\s+$",
    r"^\s+|\s+$", r"(?:.|\s)*\S!", r"(\S+\s*)+$", r"(?:[^,]*,)*;", r"([^\"]*\"[^\"]*\")*$", r"(a+b?)+c",
    r"(?:a+)(?:a+)(?:a+)(?:a+)b", r"\w*\w*\w*\w*\w*!", r".*?.*?.*?.*?=$", r"(?:(?:a+)+)+b", r"(a?a?a?a?a?a?a?a?)+b",
    r"(?:ab|a|b)+c", r"x*x*x*x*x*x*x*x*y", r"(x+x+)+y", r"(?:x|x|x)+y", r"(?i)(?:k|K)+z", r"^(?:a+)*$",
    r"(?:é|e|.)+!", r"[ab]*a[ab]{12}c", r"(a|b)*a(a|b){60}c",
)  # fmt: skip
"""Known to take a backtracking engine, or a table of all its states, beyond any bound."""
