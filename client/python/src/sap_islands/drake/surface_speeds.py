"""Velocities of surfaces that move along themselves, as belts do: new in Drake 1.56.

A body that is registered by `SetSurfaceVelocityAxis` has at a contact

    v = s a x n,   s: its speed,   a: the axis in the world,   n: the normal out of the body
"""

from __future__ import annotations

import math
import weakref

import numpy as np
from pydrake.common.value import AbstractValue
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.errors import InvalidArgument

# [3] axis in the body's frame, by index of the body.
_axes: weakref.WeakKeyDictionary[MultibodyPlant, dict[int, FloatArray]] = (
    weakref.WeakKeyDictionary()
)


def surface_velocities(
    plant: MultibodyPlant, context: Context, bodies: IntArray, frames: FloatArray
) -> FloatArray:
    """[C, 3] velocity of the surface of B relative to that of A, in the frame of the contact.

    Without that of the bodies; empty if no surface moves.

    Args:
        plant: The plant.
        context: Its context.
        bodies: [C, 2] indices of bodies A and B.
        frames: [C, 3, 3] rows t1, t2, n with n from A to B.

    Raises:
        InvalidArgument: A speed is not finite; the message names the body.
    """
    moving = _spins(plant, context)
    if not moving:
        return np.empty(0)
    spins = np.zeros((plant.num_bodies(), 3))
    for body, spin in moving.items():
        spins[body] = spin
    normal = frames[:, 2]
    # n points out of A, and into B.
    velocity = -np.cross(spins[bodies[:, 1]], normal) - np.cross(spins[bodies[:, 0]], normal)
    in_frame: FloatArray = np.einsum("cij,cj->ci", frames, velocity)
    return in_frame


def copy_surface_speeds(plant: MultibodyPlant, source: Context, target: Context) -> None:
    """Fixes the speeds of a context in another one, if there are any."""
    if _axes_of(plant):
        port = plant.get_surface_speeds_input_port()
        if port.HasValue(source):
            port.FixValue(target, AbstractValue.Make(port.Eval(source)))


def _spins(plant: MultibodyPlant, context: Context) -> dict[int, FloatArray]:
    """Speed times axis [3], in the world, of each body whose surface moves."""
    axes = _axes_of(plant)
    if not axes:
        return {}
    port = plant.get_surface_speeds_input_port()
    if not port.HasValue(context):
        return {}
    speeds, spins = port.Eval(context), {}
    for index, axis in axes.items():
        body = plant.get_body(BodyIndex(index))
        name = str(body.scoped_name())
        signal = speeds.Find(name)
        speed = 0.0 if signal is None else float(signal)
        if not math.isfinite(speed):
            message = f"the surface speed of body {name} is {speed}; it must be finite"
            raise InvalidArgument(message, "surface_speeds")
        if speed:
            rotation = plant.EvalBodyPoseInWorld(context, body).rotation()
            spins[index] = speed * (rotation @ axis)
    return spins


def _axes_of(plant: MultibodyPlant) -> dict[int, FloatArray]:
    if plant not in _axes:
        axis_of = getattr(plant, "GetSurfaceVelocityAxis", lambda _: None)  # new in 1.56
        indices = range(plant.num_bodies())
        axes = {index: axis_of(plant.get_body(BodyIndex(index))) for index in indices}
        _axes[plant] = {i: np.asarray(axis) for i, axis in axes.items() if axis is not None}
    return _axes[plant]
