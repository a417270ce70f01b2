"""A comparison of policies as one page: no script, no network, everything that is quoted escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def page(summary: str, sections: Sequence[Any]) -> str:
    """The page. Each section has what it is ``because_of``, and ``tables`` of launches with a ``title`` and ``rows``
    (``model``, ``on``, ``own``, ``memory``, ``effects``)."""
    import jinja2  # only for whoever asks for a page

    loader = jinja2.PackageLoader("gezel_rules.author", "")
    templates = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return templates.get_template("diff_page.html").render(summary=summary, sections=sections)
