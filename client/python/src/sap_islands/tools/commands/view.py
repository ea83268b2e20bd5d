"""Shows a simulation while it runs, or a saved run, in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from sap_islands.tools.commands.shared_arguments import (
    add_server_arguments,
    connect_to,
    number,
    require_extra,
    whole_number,
)
from sap_islands.tools.commands.simulate import add_scene_arguments, new_simulation
from sap_islands.tools.trajectory import Trajectory

if TYPE_CHECKING:
    from sap_islands.tools.viewer import Viewer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_scene_arguments(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address of the page (%(default)s)")
    parser.add_argument(
        "--port", type=whole_number(1, 65535), default=8080, help="port of the page (%(default)s)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--time", type=number(0), metavar="S", help="exit after this time [s] (never)"
    )
    add_server_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns 0 after --time or an interrupt."""
    require_extra("viser", "view")
    try:
        if Path(arguments.scene).suffix == ".npz":
            return _show_saved(arguments)
        return _show_simulation(arguments)
    except KeyboardInterrupt:
        return 0


def _show_saved(arguments: argparse.Namespace) -> int:
    from sap_islands.tools.viewer import Viewer

    viewer = Viewer(Trajectory.load(arguments.scene), host=arguments.host, port=arguments.port)
    _print_url(viewer, arguments)
    viewer.play(duration_s=arguments.time)
    viewer.close()
    return 0


def _show_simulation(arguments: argparse.Namespace) -> int:
    from sap_islands.tools.viewer import Viewer

    with connect_to(arguments) as client, client.session() as session:
        simulation = new_simulation(arguments, session)
        viewer = Viewer(simulation.new_trajectory(), host=arguments.host, port=arguments.port)
        _print_url(viewer, arguments)
        viewer.play(simulation.step, duration_s=arguments.time)
        viewer.close()
    return 0


def _print_url(viewer: Viewer, arguments: argparse.Namespace) -> None:
    if viewer.port != arguments.port:
        print(f"Port {arguments.port} is in use.")
    print(f"Look at {viewer.url} (Ctrl-C to stop)", flush=True)
    if arguments.open:
        webbrowser.open(viewer.url)
