"""A model that only a server has, as the planner takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gezel_rules.planner.subject import Remote, RemoteFile
from gezel_rules.session.installs import companion_names
from gezel_rules.store.elsewhere import look, path_of
from gezel_rules.store.web import Web

if TYPE_CHECKING:
    from gezel_rules.catalog.references import Reference
    from gezel_rules.session.session import Session


def elsewhere(session: Session, reference: Reference) -> Remote:
    """What the server of a hub or URL reference says of it; only the header is read. Raises BadInput,
    TransferFailed."""
    web = Web()
    try:
        plan, family, model = look(reference, web, companion_names(session))
    finally:
        web.close()
    files = [(each.role, RemoteFile(each.name, path_of(plan, each, session.store), each.size)) for each in plan.wanted]
    source = f"{model.format} {files[0][1].name} of {reference.name if reference.kind == 'hub' else 'its server'}"
    projector = next((file for role, file in files if role == "projector"), None)
    return Remote(plan.model_id, family, model, source, files[0][1], projector)
