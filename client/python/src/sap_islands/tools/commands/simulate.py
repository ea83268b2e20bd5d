"""Simulates a scene through the service; prints a summary, and can save and plot the run."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from sap_islands.tools.commands.shared_arguments import (
    INTERRUPTED,
    add_server_arguments,
    connect_to,
    new_file,
    number,
    require_extra,
    require_plot,
    whole_number,
)
from sap_islands.tools.trajectory import Trajectory

if TYPE_CHECKING:
    from sap_islands.client import Client
    from sap_islands.session import Session
    from sap_islands.tools.simulation import Simulation

_SCENE_HELP = (
    "clutter, bin, stacks, heaps; with deformable bodies grip, cloth, cable, soft-bin; "
    "or an MJCF or URDF file"
)


def add_scene_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select a scene and its contact parameters."""
    parser.add_argument("scene", help=_SCENE_HELP)
    parser.add_argument(
        "--bodies", type=whole_number(1), metavar="N", help="number of bodies of a scene"
    )
    parser.add_argument("--stiffness", type=number(0), metavar="K", help="of all contacts [N/m]")
    parser.add_argument(
        "--relaxation-time", type=number(0), metavar="TAU", help="of all contacts [s]"
    )


def new_simulation(arguments: argparse.Namespace, solver: Session | Client) -> Simulation:
    """The simulation of the selected scene."""
    require_extra("mujoco", "mujoco")
    from sap_islands.mujoco import Material
    from sap_islands.scenes import load_scene
    from sap_islands.soft_scenes import SOFT_SCENES, load_soft_scene
    from sap_islands.tools.simulation import Simulation
    from sap_islands.tools.soft_simulation import SoftSimulation

    material = Material(stiffness=arguments.stiffness, relaxation_time=arguments.relaxation_time)
    if arguments.scene in SOFT_SCENES:
        scene = load_soft_scene(arguments.scene, arguments.bodies)
        return SoftSimulation(scene, solver, material=material)
    model = load_scene(arguments.scene, arguments.bodies, SOFT_SCENES)
    return Simulation(model, solver, material=material)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_scene_arguments(parser)
    parser.add_argument("--time", type=number(0), default=3.0, metavar="S", help="duration [s] (3)")
    parser.add_argument(
        "--output", type=new_file, metavar="FILE", help="save the run as .npz, for view"
    )
    parser.add_argument(
        "--plot", type=new_file, metavar="FILE", help="plot the run, as .png, .svg or .pdf"
    )
    parser.add_argument(
        "--picture",
        type=new_file,
        metavar="FILE",
        help="draw the last step, as .png, .webp or .svg",
    )
    add_server_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns 0 only if every island of every step was solved.

    An interrupt ends the simulation: its steps are saved and plotted as those of a whole one.
    """
    if arguments.plot:
        require_plot(arguments.plot)
    if arguments.picture:
        require_plot(arguments.picture, "picture")
        require_extra("trimesh", "view")
    with connect_to(arguments) as client, client.session() as session:
        simulation = new_simulation(arguments, session)
        trajectory = simulation.new_trajectory()
        steps = range(round(arguments.time / simulation.model.opt.timestep))
        started = time.perf_counter()
        with contextlib.suppress(KeyboardInterrupt):
            for _ in tqdm(steps, disable=None, leave=False):
                trajectory.frames.append(simulation.step())
        elapsed = time.perf_counter() - started
    print(summary(trajectory, elapsed))
    if arguments.output:
        trajectory.save(arguments.output)
    if arguments.plot:
        plot(trajectory, Path(arguments.plot))
    if arguments.picture and trajectory.frames:
        from sap_islands.tools.picture import draw

        draw(trajectory, len(trajectory.frames) - 1, Path(arguments.picture))
    if len(trajectory.frames) < len(steps):
        return INTERRUPTED
    return 1 if any(frame.unsolved for frame in trajectory.frames) else 0


def summary(trajectory: Trajectory, elapsed_s: float) -> str:
    """One line with the time per step, contacts, islands, iterations and unsolved islands."""
    frames = trajectory.frames
    if not frames:
        return "no step"
    iterations = [int(frame.iterations.max(initial=0)) for frame in frames]
    unsolved = sum(frame.unsolved for frame in frames)
    return (
        f"{len(frames)} steps in {elapsed_s:.2f} s, {1e3 * elapsed_s / len(frames):.2f} ms each; "
        f"{np.mean([len(f.contact_point) for f in frames]):.0f} contacts and "
        f"{np.mean([len(f.iterations) for f in frames]):.0f} islands on average, "
        f"at most {max(iterations)} iterations; {unsolved} islands not solved"
    )


def plot(trajectory: Trajectory, path: Path) -> None:
    """Plots contacts, islands, iterations, certificates and solve times over time to a file."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    frames = trajectory.frames
    time_s = [frame.time for frame in frames]
    figure, axes = pyplot.subplots(4, 1, sharex=True, figsize=(8, 9), layout="constrained")
    axes[0].plot(time_s, [len(f.contact_point) for f in frames], label="contacts")
    axes[0].plot(time_s, [len(f.iterations) for f in frames], label="islands")
    axes[0].legend()
    axes[1].plot(time_s, [f.iterations.max(initial=0) for f in frames])
    axes[1].set_ylabel("most iterations")
    axes[2].semilogy(time_s, [max(f.gap_bound.max(initial=0), 1e-30) for f in frames])
    axes[2].set_ylabel("largest gap bound [J]")
    axes[3].semilogy(time_s, [max(1e3 * f.solve_time_s.sum(), 1e-6) for f in frames])
    axes[3].set_ylabel("solve time [ms]")
    axes[3].set_xlabel("time [s]")
    figure.savefig(path)
    pyplot.close(figure)
