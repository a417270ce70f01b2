"""Pages that need nothing else: templates of this folder, everything that is quoted escaped."""

from __future__ import annotations

from typing import Any


def rendered(template: str, **shown: Any) -> str:
    """A template of this folder with its values. A value that it asks for and is not given is an error of ours."""
    import jinja2  # only for whoever asks for a page

    loader = jinja2.PackageLoader("gezel_rules.author", "")
    templates = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return templates.get_template(template).render(**shown)
