"""Springs and dampers of tendons, and dampers of actuators: implicit.

Along a tendon or a transmission with moment arms m they have at the end of the step the force

    f = f_0 - δt k m' v - d (m' v - l̇_0)

In one tree it is part of A, over several trees a constraint row without bounds. A tendon's spring
that is slack at the beginning of the step has k = 0. Polynomial terms keep their value of the
beginning of the step.
"""

from __future__ import annotations

import math

import mujoco

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.mujoco.layout import LAYOUT, MODEL, STATE
from sap_islands.mujoco.servos import Servos, add_gains, add_row, is_in_one_tree, moment_arms
from sap_islands.numba_kernels import (
    FlagArray,
    IndexArray,
    compiled,
    indices,
    integers,
    reals,
)

_WITH_DAMPING = tuple(
    int(kind)
    for kind in (
        mujoco.mjtTrn.mjTRN_JOINT,
        mujoco.mjtTrn.mjTRN_JOINTINPARENT,
        mujoco.mjtTrn.mjTRN_TENDON,
    )
)


@compiled
def add_tendons(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    with_springs: bool,
    with_dampers: bool,
    blocks: FloatArray,
    withheld: FloatArray,
    is_implicit: FlagArray,
    servos: Servos,
) -> None:
    """Adds to the blocks of A, and writes the rows; see `servos.add_servos`."""
    for tendon in range(len(reals(model, MODEL.tendon_stiffness))):
        k = d = force = 0.0
        if with_springs:
            stretch = _stretch(model, state, tendon)
            k = reals(model, MODEL.tendon_stiffness)[tendon] if stretch != 0.0 else 0.0
            force = -k * stretch
        if with_dampers:
            d = reals(model, MODEL.tendon_damping)[tendon]
        first = integers(state, STATE.ten_J_rowadr)[tendon]
        last = first + integers(state, STATE.ten_J_rownnz)[tendon]
        dofs = integers(state, STATE.ten_J_colind)[first:last]
        moment = reals(state, STATE.ten_J)[first:last]
        speed = reals(state, STATE.ten_velocity)[tendon]
        _add(
            state,
            layout,
            dt,
            k,
            d,
            force,
            speed,
            dofs,
            moment,
            blocks,
            withheld,
            is_implicit,
            servos,
        )
    if not with_dampers:
        return
    for actuator in range(len(servos.mode)):
        d = reals(model, MODEL.actuator_damping)[actuator]
        output = indices(layout, LAYOUT.output)[actuator]
        kind = integers(model, MODEL.actuator_trntype)[actuator]
        if d > 0.0 and output >= 0 and kind in _WITH_DAMPING:
            dofs, moment = moment_arms(state, output)
            speed = reals(state, STATE.actuator_velocity)[output]
            _add(
                state,
                layout,
                dt,
                0.0,
                d,
                0.0,
                speed,
                dofs,
                moment,
                blocks,
                withheld,
                is_implicit,
                servos,
            )


@compiled
def _stretch(model: IndexArray, state: IndexArray, tendon: int) -> float:
    """Length of a tendon beyond the range in which its spring is slack [m, rad]."""
    length = reals(state, STATE.ten_length)[tendon]
    slack = reals(model, MODEL.tendon_lengthspring)[2 * tendon : 2 * tendon + 2]
    return max(length - slack[1], 0.0) + min(length - slack[0], 0.0)


@compiled
def _add(
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    k: float,
    d: float,
    spring: float,
    speed: float,
    dofs: IntArray,
    moment: FloatArray,
    blocks: FloatArray,
    withheld: FloatArray,
    is_implicit: FlagArray,
    servos: Servos,
) -> None:
    """Adds the force of a spring, `spring` at the beginning of the step, and a damper."""
    if len(dofs) == 0 or (k <= 0.0 and d <= 0.0):
        return
    if is_in_one_tree(layout, dofs):
        add_gains(state, layout, dt, k, d, dofs, moment, blocks, withheld, is_implicit)
    else:
        force, gain = spring - d * speed, dt * (d + dt * k)
        add_row(servos, withheld, dofs, moment, force, gain, spring, -math.inf, math.inf)
