"""RPC servers whose devices a launch uses: asked before anything starts, since the engine aborts on a silent one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gezel_rules.errors import BadInput, Refused, why
from gezel_rules.facts.printable import printable

PATIENCE = 3.0  # seconds for a machine of the same network to take a connection
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})")


def require_rpc_servers(servers: Sequence[str], patience: float = PATIENCE) -> None:
    """Each ``host:port`` takes a connection. Raises BadInput for what is no address, Refused for one that is silent."""
    addresses = [_address(server) for server in servers]
    import socket  # only launches with RPC servers pay for it

    for host, port in addresses:
        try:
            socket.create_connection((host, port), patience).close()
        except OSError as error:
            said = f"rpc: {host}:{port} does not answer ({why(error)})"
            raise Refused(f"{said}: start an RPC server there, or leave it out") from None


def _address(server: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(server)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise BadInput(f"rpc: '{printable(server)}' is not host:port")
    return match["host"].strip("[]"), int(match["port"])
