"""The task of Clutter-v0: a pusher moves one object to a goal, among others that are in the way."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
from gymnasium.spaces import Box, Space

from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument
from sap_islands.mujoco import find_contacts_within

TIME_STEP = 0.01  # s
SPEED = 0.5  # of the pusher, for an action of 1 [m/s]
REACHED = 0.05  # distance of the object from the goal at which an episode ends [m]

_PITCH = 0.17  # of the cells in which objects start [m]
_JITTER = 0.02  # largest distance from the middle of a cell, along x and y [m]
_EDGE = 0.1  # of an object [m]
_FARTHEST, _FASTEST = 10.0, 10.0  # bounds of what is observed [m], [m/s]
_NEAREST_GOAL = 3 * REACHED  # to the object, at the beginning [m]
_FIND_WITHIN = 0.005  # distance within which MuJoCo reports contacts [m]


class Clutter:
    """State of one episode. The model has no state, and episodes may share it.

    Observation [6 + 3 objects]: position and velocity of the pusher, position of the goal (x and y
    each), positions of the objects, the one to move first [m, m/s]. Action [2]: velocity of the
    pusher, which follows it with at most 60 N. Reward: minus the distance of the object from the
    goal, minus a tenth of the distance of the pusher from the object [m]; 1 more where the goal is
    reached, which ends the episode.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self.data = mujoco.MjData(model)
        self.goal = np.zeros(2)
        self._objects = model.nbody - 2  # without the world and the pusher
        self._bounds = _bounds(self._objects)

    def begin(self, random: np.random.Generator) -> None:
        """Starts an episode: objects, pusher and goal at random places."""
        mujoco.mj_resetData(self.model, self.data)
        side = _cells_along_side(self._objects)
        cells = random.permutation(side * side)[: self._objects + 1]
        places = (np.column_stack(np.divmod(cells, side)) - (side - 1) / 2) * _PITCH
        places += random.uniform(-_JITTER, _JITTER, places.shape)
        turned = random.uniform(-np.pi, np.pi, self._objects) / 2
        objects = self.data.qpos[2:].reshape(-1, 7)
        self.data.qpos[:2], objects[:, :2] = places[0], places[1:]
        objects[:, 3], objects[:, 6] = np.cos(turned), np.sin(turned)
        reach = side * _PITCH / 2 - _EDGE
        self.goal = places[1].copy()
        while math.dist(self.goal, places[1]) < _NEAREST_GOAL:
            self.goal = random.uniform(-reach, reach, 2)

    def act(self, action: Any) -> None:
        """Sets the action of the next step.

        Raises:
            InvalidArgument: It is not two finite numbers.
        """
        wanted = np.asarray(action, float)
        if wanted.shape != (2,) or not np.isfinite(wanted).all():
            raise InvalidArgument(f"action is {action}; two finite numbers are needed", "action")
        self.data.ctrl[:] = SPEED * np.clip(wanted, -1.0, 1.0)

    def observation(self) -> FloatArray:
        """The observation of the agent."""
        qpos = self.data.qpos
        objects = qpos[2:].reshape(-1, 7)[:, :3]
        seen = np.concatenate((qpos[:2], self.data.qvel[:2], self.goal, objects.ravel()))
        return seen.clip(-self._bounds, self._bounds)

    def judge(self) -> tuple[float, bool, dict[str, Any]]:
        """Reward of the last step, whether the goal is reached, and `info`."""
        pusher, moved = self.data.qpos[:2], self.data.qpos[2:4]
        distance = math.dist(moved, self.goal)
        reached = distance < REACHED
        reward = reached - distance - 0.1 * math.dist(pusher, moved)
        return reward, reached, {"distance": distance, "is_success": reached}


def make_model(objects: int) -> mujoco.MjModel:
    """The model of a bin with `objects` boxes and balls, the one to move first, and a pusher.

    Raises:
        InvalidArgument: There is no object.
    """
    if objects < 1:
        raise InvalidArgument(f"objects is {objects}; it must be at least 1", "objects")
    side = _cells_along_side(objects)
    half = side * _PITCH / 2 + 0.02
    bodies = "".join(_object(i) for i in range(objects))
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco>
          <option timestep="{TIME_STEP}"/>
          <default><geom density="500" friction="0.5"/></default>
          <worldbody>
            <geom type="plane" size="20 20 .1"/>{_walls(half)}
            <body name="pusher" pos="0 0 .06">
              <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
              <geom type="cylinder" size=".03 .05" mass="2" rgba=".2 .2 .2 1"/>
            </body>{bodies}
          </worldbody>
          <actuator>
            <velocity joint="x" kv="200" forcerange="-60 60"/>
            <velocity joint="y" kv="200" forcerange="-60 60"/>
          </actuator>
        </mujoco>"""
    )
    find_contacts_within(model, _FIND_WITHIN)
    return model


def observation_space(objects: int) -> Space[Any]:
    """The space of observations with this number of objects."""
    bounds = _bounds(objects)
    return Box(-bounds, bounds, dtype=np.float64)


def action_space() -> Space[Any]:
    """The space of actions."""
    return Box(-1.0, 1.0, (2,), np.float32)


def _bounds(objects: int) -> FloatArray:
    bounds = np.full(6 + 3 * objects, _FARTHEST)
    bounds[2:4] = _FASTEST
    return bounds


def _cells_along_side(objects: int) -> int:
    return math.isqrt(objects) + 1  # of objects and pusher


def _object(number: int) -> str:
    half = _EDGE / 2
    shape = f'type="box" size="{half} {half} {half}"' if number % 2 == 0 else f'size="{half}"'
    color = ' rgba=".8 .2 .2 1"' if number == 0 else ""
    return f'<body pos="0 0 {half}"><freejoint/><geom {shape}{color}/></body>'


def _walls(half: float) -> str:
    walls = []
    for axis in (0, 1):
        for sign in (-1, 1):
            place, size = [0.0, 0.0, 0.1], [half, half, 0.1]
            place[axis], size[axis] = sign * (half + 0.02), 0.02
            walls.append(
                f'<geom type="box" pos="{place[0]} {place[1]} {place[2]}" '
                f'size="{size[0]} {size[1]} {size[2]}" rgba=".7 .8 .9 .2"/>'
            )
    return "".join(walls)
