"""Servers on the nodes of a Ray cluster, which Ray starts and restarts.

    import sap_islands.ray

    sap_islands.ray.start(threads=8)  # once
    with sap_islands.ray.connect() as client:  # in any driver, task or actor
        solution = client.solve(problem)

A detached actor on each node owns a process of sap-server on a TCP port. The actor starts it again
when it ends, and Ray the actor, at the same address. Problems and solutions never pass through Ray.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
import ray.util
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sap_islands._library.c_requests import check_reconnect_within
from sap_islands._library.connect import remote_client
from sap_islands._library.native_solver import NativeSolver
from sap_islands._process.embedded_server import START_TIMEOUT_S, EmbeddedServer
from sap_islands.client import Client
from sap_islands.errors import InvalidArgument, Unavailable

_NAMESPACE = "sap_islands"
_PREFIX = "server-"  # of the name of an actor; the id of its node follows
_ANSWER_TIMEOUT_S = 5.0


def start(threads: int, *, port: int = 0, server_arguments: Sequence[str] = ()) -> int:
    """Starts a server on every node that has as many processors, unless one runs there.

    It is for a network whose machines trust each other: the TCP ports take calls without TLS.

    Args:
        threads: That solve on a node; Ray reserves as many of its processors.
        port: TCP port, the same on all nodes; 0: each has a free one, which it keeps.
        server_arguments: Further command-line arguments of the servers.

    Returns:
        The number of nodes with a server.

    Raises:
        InvalidArgument: `threads` is not positive, or no node has as many processors.
    """
    if threads < 1:
        raise InvalidArgument(f"threads is {threads}; it must be positive", "threads")
    nodes = [node for node in _live_nodes() if node["Resources"].get("CPU", 0) >= threads]
    if not nodes:
        message = f"threads is {threads}; no node of the Ray cluster has as many processors"
        raise InvalidArgument(message, "threads")
    actors = []
    for node in nodes:
        actor = ray.remote(_NodeServer).options(
            name=_PREFIX + node["NodeID"],
            namespace=_NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            max_restarts=-1,
            num_cpus=threads,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        actors.append(actor.remote(threads, port, tuple(server_arguments)))
    ray.get([actor.address.remote() for actor in actors])
    return len(actors)


def connect(*, reconnect_within: float = 5.0, allow_mixed_servers: bool = False) -> Client:
    """Makes a client of the servers that `start` has started.

    Calls and sessions go to the server of this node; while it is away, to that of the next node,
    until the connection to it ends. From a node without a server they take turns over those that
    now run in the cluster.

    Args:
        reconnect_within: As for `sap_islands.connect`.
        allow_mixed_servers: As for `sap_islands.connect`.

    Raises:
        Unavailable: No server runs in the cluster.
    """
    check_reconnect_within(reconnect_within)
    addresses = _addresses()
    if not addresses:
        raise Unavailable("no server runs in this Ray cluster; call sap_islands.ray.start")
    node = ray.get_runtime_context().get_node_id()
    # This node first, then those after it.
    ids = sorted(addresses, key=lambda other: (other < node, other))
    client = remote_client(
        ",".join(addresses[other] for other in ids),
        reconnect_within,
        allow_mixed_servers,
        in_order=node in addresses,
    )
    return Client(NativeSolver(client))


def stop() -> None:
    """Ends all servers of the cluster."""
    for actor in _actors().values():
        ray.kill(actor)


class _NodeServer:
    """The server of a node, as an actor that starts it again when it ends."""

    def __init__(self, threads: int, port: int, arguments: tuple[str, ...]) -> None:
        kept = _port_file(ray.get_runtime_context().get_node_id())
        port = port or _free_port(kept)
        kept.write_text(str(port))
        self._address = f"{ray.util.get_node_ip_address()}:{port}"
        arguments = ("--threads", str(threads), *arguments, "--insecure-listen")
        server = _start_server(arguments, self._address)
        threading.Thread(target=_keep, args=(server, arguments), daemon=True).start()

    def address(self) -> str:
        """HOST:PORT of the server for other nodes."""
        return self._address


def _keep(server: EmbeddedServer, arguments: Sequence[str]) -> None:
    while True:
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
        server.stop()
        try:
            server = _start_server(arguments, server.address)
        except Unavailable:
            os._exit(1)  # Ray restarts an actor whose process fails


def _start_server(arguments: Sequence[str], address: str) -> EmbeddedServer:
    """Starts a server, once that of an actor that was killed has left the address."""
    give_up = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return EmbeddedServer(arguments, address)
        except Unavailable:
            if time.monotonic() > give_up:
                raise
        time.sleep(0.05)


def _port_file(node: str) -> Path:
    """The file with the port of the node's server, in a directory of this user alone."""
    directory = Path(tempfile.gettempdir(), f"sap-islands-ray-{os.getuid()}")
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.lstat().st_uid != os.getuid():
        raise Unavailable(f"{directory} belongs to another user")
    return directory / f"{node[:16]}.port"


def _free_port(kept: Path) -> int:
    """The port that the node had before, or a free one."""
    if kept.exists():
        return int(kept.read_text())
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _live_nodes() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _actors() -> dict[str, Any]:
    """The actors by the ids of their nodes."""
    named = ray.util.list_named_actors(all_namespaces=True)
    names = [actor["name"] for actor in named if actor["namespace"] == _NAMESPACE]
    return {
        name.removeprefix(_PREFIX): ray.get_actor(name, _NAMESPACE)
        for name in names
        if name.startswith(_PREFIX)
    }


def _addresses() -> dict[str, str]:
    """HOST:PORT of the servers that run, by the ids of their nodes."""
    live = {node["NodeID"] for node in _live_nodes()}
    asked = {actor.address.remote(): node for node, actor in _actors().items() if node in live}
    answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_ANSWER_TIMEOUT_S)
    found = {}
    for answer in answered:
        try:
            found[asked[answer]] = str(ray.get(answer))
        except ray.exceptions.RayError:
            continue  # its actor has just ended
    return found
