"""Command-line options that several commands share: server, solver, optional packages."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path

from sap_islands._library.native_client import EMBEDDED
from sap_islands.client import Client, connect
from sap_islands.errors import InvalidArgument
from sap_islands.options import NewtonMethod, Options
from sap_islands.tls import Tls

TOKEN_VARIABLE = "SAP_TOKEN"
INTERRUPTED = 130  # exit code of a program that Ctrl-C has ended


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select a server, with the names that sap-client has for them."""
    group = parser.add_argument_group("server")
    group.add_argument(
        "--server",
        default=EMBEDDED,
        metavar="ADDR",
        help="HOST:PORT, a list of these, dns:///NAME:PORT, xds:///NAME, unix:PATH or "
        "embedded:process (default: solve in this process)",
    )
    group.add_argument("--tls", action="store_true", help="encrypt the connection")
    for name, metavar, what in (
        ("ca", "PEM", "trusted authorities, in place of those of the system"),
        ("cert", "PEM", "certificate of this client"),
        ("key", "PEM", "private key of --tls-cert"),
        ("server-name", "NAME", "name in the server's certificate, if it is not the host"),
    ):
        group.add_argument(f"--tls-{name}", metavar=metavar, help=f"{what}; implies --tls")
    group.add_argument(
        "--token-file", metavar="FILE", help=f"bearer token (default: ${TOKEN_VARIABLE}, if set)"
    )


def connect_to(arguments: argparse.Namespace) -> Client:
    """Connects to the selected server, with the token of --token-file or $SAP_TOKEN.

    Raises:
        InvalidArgument: A file is not readable, or an argument is malformed.
    """
    tls = Tls(arguments.tls_ca, arguments.tls_cert, arguments.tls_key, arguments.tls_server_name)
    token = os.environ.get(TOKEN_VARIABLE)
    if arguments.token_file is not None:
        token = Path(arguments.token_file).read_text("utf-8", "replace").strip()
    return connect(arguments.server, tls=tls if tls != Tls() else arguments.tls, token=token)


def add_solver_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the solver."""
    group = parser.add_argument_group("solver")
    group.add_argument("--tolerance", type=float, metavar="EPS", help="relative tolerance (1e-6)")
    group.add_argument("--max-iterations", type=int, metavar="N", help="per island (500)")
    group.add_argument("--time-budget", type=float, metavar="S", help="per solve [s] (no limit)")
    group.add_argument("--no-islands", action="store_true", help="solve all islands as one system")
    methods = ("plain", "accelerated", "gauss-seidel")
    group.add_argument("--newton", choices=methods, help="method (accelerated)")


def options_of(arguments: argparse.Namespace) -> Options:
    """Solver options from the command line."""
    newton = NewtonMethod.UNSPECIFIED
    if arguments.newton is not None:
        newton = NewtonMethod[arguments.newton.upper().replace("-", "_")]
    return Options(
        relative_tolerance=arguments.tolerance,
        max_iterations=arguments.max_iterations,
        time_budget=arguments.time_budget,
        islands=False if arguments.no_islands else None,
        newton=newton,
    )


def number(least: float) -> Callable[[str], float]:
    """The type of an argument that is a finite number, and at least so large."""

    def parse(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and value >= least):
            raise argparse.ArgumentTypeError(f"{text} is not a finite number of at least {least:g}")
        return value

    return parse


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of an argument that is a whole number within bounds."""

    def parse(text: str) -> int:
        value = int(text)
        if value < least or (most is not None and value > most):
            bound = "" if most is None else f" and at most {most}"
            raise argparse.ArgumentTypeError(f"{text} is not at least {least}{bound}")
        return value

    return parse


def input_path(text: str) -> str:
    """The path of an input file; "-" is standard input."""
    return "/dev/stdin" if text == "-" else text


def new_file(text: str) -> str:
    """The type of an argument that names a file to write, when the work is done."""
    if not Path(text).absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is in no folder that exists")
    return text


def require_plot(path: str, argument: str = "plot") -> None:
    """Checks that matplotlib is installed and writes files with the suffix of a path.

    Raises:
        InvalidArgument: It is missing, or does not.
    """
    require_extra("matplotlib", "plot")
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in known:
        message = f"--{argument} is {path!r}; its suffix must be one of {', '.join(sorted(known))}"
        raise InvalidArgument(message, argument)


def require_extra(module: str, extra: str) -> None:
    """Checks that an optional package is installed.

    Args:
        module: Module to import.
        extra: Extra of this package that installs it.

    Raises:
        InvalidArgument: It is missing; the message has the command that installs it.
    """
    try:
        __import__(module)
    except ImportError as error:
        message = (
            f"{error.name} is not installed; it is part of the extra {extra!r}: "
            f"pip install 'sap-islands[{extra}]'"
        )
        raise InvalidArgument(message) from None
