"""What the commands share."""

from __future__ import annotations

import argparse
import os

from sap_islands.channel import Tls
from sap_islands.client import Client, connect
from sap_islands.client_base import EMBEDDED
from sap_islands.errors import InvalidArgument
from sap_islands.options import NewtonMethod, Options

TOKEN_VARIABLE = "SAP_TOKEN"


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """--server and what belongs to it."""
    group = parser.add_argument_group("server")
    group.add_argument(
        "--server",
        default=EMBEDDED,
        metavar="ADDR",
        help="HOST:PORT or unix:PATH (a server of its own)",
    )
    group.add_argument("--tls", action="store_true", help="speak TLS")
    group.add_argument("--ca", metavar="PEM", help="whom to trust; implies --tls")


def connect_to(arguments: argparse.Namespace) -> Client:
    """The client that the command line asks for; a token comes from the environment."""
    tls: Tls | bool = Tls(root_certificates=arguments.ca) if arguments.ca else arguments.tls
    token = os.environ.get(TOKEN_VARIABLE)
    return connect(arguments.server, tls=tls, token=token)


def add_solver_arguments(parser: argparse.ArgumentParser) -> None:
    """How to solve."""
    group = parser.add_argument_group("solver")
    group.add_argument("--tolerance", type=float, metavar="EPS", help="relative tolerance (1e-6)")
    group.add_argument("--max-iterations", type=int, metavar="N", help="of an island (500)")
    group.add_argument("--time-budget", type=float, metavar="S", help="for each solve [s]")
    group.add_argument("--no-islands", action="store_true", help="solve everything as one")
    group.add_argument("--newton", choices=("plain", "accelerated"), help="method (accelerated)")


def options_of(arguments: argparse.Namespace) -> Options:
    """The options that the command line asks for."""
    newton = NewtonMethod.UNSPECIFIED
    if arguments.newton is not None:
        newton = NewtonMethod[arguments.newton.upper()]
    return Options(
        relative_tolerance=arguments.tolerance,
        max_iterations=arguments.max_iterations,
        time_budget=arguments.time_budget,
        islands=False if arguments.no_islands else None,
        newton=newton,
    )


def require_extra(module: str, extra: str) -> None:
    """Says which extra to install where a module is missing."""
    try:
        __import__(module)
    except ImportError as error:
        message = (
            f"this needs {error.name}, which comes with the extra {extra!r}: "
            f"pip install './client/python[{extra}]' in the clone"
        )
        raise InvalidArgument(message) from None
