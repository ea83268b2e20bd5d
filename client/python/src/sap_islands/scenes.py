"""Scenes for the command line, the examples and the tests, as MuJoCo models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

import mujoco
import numpy as np

from sap_islands.errors import InvalidArgument
from sap_islands.mujoco import find_contacts_within

_EDGE, _RADIUS = 0.1, 0.05  # edge of boxes, radius of spheres [m]
_DENSITY = 1000.0  # kg/m³
_FIND_WITHIN = 0.005  # distance within which MuJoCo reports contacts [m]


def load_scene(name: str, bodies: int | None = None, others: Iterable[str] = ()) -> mujoco.MjModel:
    """Loads a scene by name, or an MJCF or URDF file.

    Args:
        name: A key of `SCENES`, or the path of a file.
        bodies: Number of bodies of a scene; None: its default. Not for files.
        others: Scenes that the caller has besides, for the message about an unknown name.

    Raises:
        InvalidArgument: The name is unknown, the file cannot be read, or `bodies` was given for a
            file.
    """
    if name in SCENES:
        model = mujoco.MjModel.from_xml_string(SCENES[name](bodies))
        find_contacts_within(model, _FIND_WITHIN)
    elif Path(name).suffix in (".xml", ".mjcf", ".urdf"):
        if bodies is not None:
            raise InvalidArgument("bodies cannot be given for a file", "bodies")
        try:
            model = mujoco.MjModel.from_xml_path(name)
        except (ValueError, OSError) as error:
            raise InvalidArgument(f"{name}: {' '.join(str(error).split())}") from None
    else:
        known = ", ".join((*SCENES, *others))
        message = f"there is no scene {name!r}; it must be {known}, or an MJCF or URDF file"
        raise InvalidArgument(message, "scene")
    return model


def _clutter(bodies: int | None) -> str:
    """Four columns of boxes and spheres that fall into a bin 80 cm wide."""
    count = 40 if bodies is None else bodies
    rng = np.random.default_rng(1)
    falling = []
    for i in range(count):
        column = i % 4
        x, y = (column % 2 - 0.5) * 0.3, (column // 2 - 0.5) * 0.3
        x, y = x + rng.uniform(-0.03, 0.03), y + rng.uniform(-0.03, 0.03)
        falling.append(_body(i, (x, y, 0.1 + 0.15 * (i // 4)), rng.uniform(-30, 30, 3)))
    return scene_model(bin_walls(0.4) + "".join(falling))


def _bin_of_many(bodies: int | None) -> str:
    """Boxes and spheres in a grid above a bin whose width grows with their number."""
    count = 1000 if bodies is None else bodies
    side = max(2, math.ceil((count / 4) ** 0.5))
    pitch = 0.16
    rng = np.random.default_rng(1)
    falling = []
    for i in range(count):
        layer, place = divmod(i, side * side)
        x, y = (np.array(divmod(place, side)) - (side - 1) / 2) * pitch
        falling.append(_body(i, (x, y, 0.1 + 0.16 * layer), rng.uniform(-30, 30, 3)))
    return scene_model(bin_walls(side * pitch / 2 + 0.02) + "".join(falling))


def _stacks(bodies: int | None) -> str:
    """Stacks of ten boxes."""
    count = 90 if bodies is None else bodies
    columns = math.ceil(count / 10)
    wide = math.ceil(columns**0.5)
    standing = []
    for i in range(count):
        column, level = divmod(i, 10)
        x, y = _centered(column, wide, 0.3)
        place = (x, y, _EDGE * (level + 0.5))
        standing.append(_body(2 * i + 1, place, np.zeros(3)))
    return scene_model(FLOOR + "".join(standing))


def _heaps(bodies: int | None) -> str:
    """Heaps of three bodies that do not touch each other."""
    count = 90 if bodies is None else bodies
    heaps = math.ceil(count / 3)
    wide = math.ceil(heaps**0.5)
    rng = np.random.default_rng(1)
    falling = []
    for i in range(count):
        heap, level = divmod(i, 3)
        x, y = _centered(heap, wide, 0.4)
        place = (x + rng.uniform(-0.03, 0.03), y, 0.07 + 0.13 * level)
        falling.append(_body(i, place, rng.uniform(-30, 30, 3)))
    return scene_model(FLOOR + "".join(falling))


def _centered(number: int, wide: int, pitch: float) -> tuple[float, float]:
    """Position (x, y) in a square grid centered on the origin [m]."""
    row, column = divmod(number, wide)
    return pitch * (column - (wide - 1) / 2), pitch * (row - (wide - 1) / 2)


SCENES: dict[str, Callable[[int | None], str]] = {
    "clutter": _clutter,
    "bin": _bin_of_many,
    "stacks": _stacks,
    "heaps": _heaps,
}

FLOOR = '<geom type="plane" size="20 20 .1" rgba=".8 .8 .8 1"/>'


def _body(number: int, place: tuple[float, float, float], turned: np.ndarray) -> str:
    shape = (
        f'type="box" size="{_EDGE / 2} {_EDGE / 2} {_EDGE / 2}"'
        if number % 2
        else f'type="sphere" size="{_RADIUS}"'
    )
    x, y, z = place
    return (
        f'<body pos="{x} {y} {z}" euler="{turned[0]} {turned[1]} {turned[2]}"><freejoint/>'
        f"<geom {shape}/></body>"
    )


def bin_walls(half: float, height: float = 0.4) -> str:
    """A floor with four walls, in MJCF, at a distance from the center [m]."""
    walls = []
    for axis in (0, 1):
        for sign in (-1, 1):
            place, size = [0.0, 0.0, height], [half, half, height]
            place[axis], size[axis] = sign * (half + 0.02), 0.02
            walls.append(
                f'<geom type="box" pos="{place[0]} {place[1]} {place[2]}" '
                f'size="{size[0]} {size[1]} {size[2]}" rgba=".7 .8 .9 .2"/>'
            )
    return FLOOR + "".join(walls)


def scene_model(world: str) -> str:
    """The MJCF of a scene with what its world holds."""
    return f"""<mujoco>
      <option timestep="0.01"/>
      <size memory="500M"/>
      <default><geom density="{_DENSITY}" friction="0.5"/></default>
      <worldbody>{world}</worldbody>
    </mujoco>"""
