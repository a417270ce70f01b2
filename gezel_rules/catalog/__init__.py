"""The catalog: which models there are, where their files come from, what is known before a byte is downloaded.

``find`` reads one entry by id; ``planner.catalog_words`` holds it against the policies.
An entry is untrusted: nothing in it can name a file outside the model's own directory.
"""

from gezel_rules.catalog.find import entries, find, has, ids
from gezel_rules.catalog.read import load_entry
from gezel_rules.catalog.records import Draft, Entry, Exclusion, ModelFile, Part, Resident, Source, Tuned

__all__ = [
    "Draft",
    "Entry",
    "Exclusion",
    "ModelFile",
    "Part",
    "Resident",
    "Source",
    "Tuned",
    "entries",
    "find",
    "has",
    "ids",
    "load_entry",
]
