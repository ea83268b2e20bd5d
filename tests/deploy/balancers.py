"""HAProxy and Envoy with the files of deploy/, in front of three servers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import envoy  # type: ignore[import-untyped]  # it has no types
import sap_islands as sap
import yaml

from fleet import DEPLOY, NAME, Process, Server, free_port, wait_until

ENVOY = Path(envoy.__file__).parent / "_bin" / "envoy"


def haproxy(servers: list[Server], port: int, secrets: Path) -> Process:
    """As it ships: all that differs between installations is in the environment."""
    environment = {
        "SAP_BIND": f"127.0.0.1:{port}",
        "SAP_CERT": str(secrets / "proxy.pem"),
        "SAP_READY_PORT": servers[0].metrics.split(":")[-1],
        "SAP_SERVER_CA": str(secrets / "ca.crt"),
        "SAP_SERVER_NAME": NAME,
    }
    for variable, server in zip(
        ("SAP_SERVER", "SAP_SERVER_2", "SAP_SERVER_3"), servers, strict=True
    ):
        environment[variable] = server.address
    command = ["/usr/sbin/haproxy", "-db", "-f", str(DEPLOY / "haproxy.cfg")]
    return Process(command, os.environ | environment)


def envoy_configuration(servers: list[Server], port: int, secrets: Path) -> dict[str, Any]:
    """As it ships, with the addresses and paths of this test."""
    text = (DEPLOY / "envoy.yaml").read_text().replace("/etc/sap-server/", f"{secrets}/")
    configuration: dict[str, Any] = yaml.safe_load(text)
    resources = configuration["static_resources"]
    resources["listeners"][0]["address"]["socket_address"] = {
        "address": "127.0.0.1",
        "port_value": port,
    }
    configuration["admin"]["address"]["socket_address"]["port_value"] = free_port()
    cluster = resources["clusters"][0]
    cluster["type"] = "STATIC"
    (place,) = cluster["load_assignment"]["endpoints"]
    addresses = [server.address.split(":") for server in servers]
    place["lb_endpoints"] = [
        {"endpoint": {"address": {"socket_address": {"address": host, "port_value": int(number)}}}}
        for host, number in addresses
    ]
    return configuration


def start_envoy(servers: list[Server], port: int, secrets: Path) -> Process:
    file = secrets / "envoy.yaml"
    file.write_text(yaml.safe_dump(envoy_configuration(servers, port, secrets)))
    # No shared memory of a base id, so that several can run on a machine.
    return Process([ENVOY, "--config-path", file, "--disable-hot-restart", "--concurrency", "1"])


Start = Callable[[list[Server], int, Path], Process]


def await_serving(process: Process, client: sap.Client) -> None:
    """Waits until a balancer is connected to its servers."""

    def serves() -> bool:
        assert process.running(), "the balancer has ended"
        try:
            return client.info(timeout=5) is not None
        except sap.SapError:
            return False

    wait_until(serves, "the balancer serves")
