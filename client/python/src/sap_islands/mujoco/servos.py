"""Actuators whose force is affine in length and velocity of their transmission, as part of A.

With the moment arms m of an actuator, length l and velocity m' v, its force changes as

    ∂τ = -m (k_p m' ∂q + k_v m' ∂v),   k_p = -∂f/∂l,   k_v = -∂f/∂l̇

as far as these stabilize. A force at its limit changes with nothing, and an actuator that couples
two trees counts with its force at the beginning of the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.jacobian import IndexArray
from sap_islands.mujoco.layout import Layout

_AFFINE_GAIN = int(mujoco.mjtGain.mjGAIN_AFFINE)
_FIXED_GAIN = int(mujoco.mjtGain.mjGAIN_FIXED)
_AFFINE_BIAS = int(mujoco.mjtBias.mjBIAS_AFFINE)
_MOST_GROUPS = 31  # of actuators that can be disabled together


@dataclass(frozen=True, eq=False)
class Servos:
    """S actuators with gains, and P pairs of dofs that each of them moves.

    Attributes:
        bias: [S, 2] -∂f/∂(l, l̇) whatever the control.
        gain: [S, 2] the same for a control of one, where `control` says where that is.
        controls: Where the controls of actuators with gain come from, None: there are none.
        limited: Those with a limit of the force.
        output: [S] row of force and moment arms.
        force_range: [S, 2].
        servo: [P] which one.
        left, right: [P] where the moment arms are in `actuator_moment`.
        left_dof, right_dof: [P] the dofs.
        place: [P] where the pair is in the array of blocks.
    """

    bias: FloatArray
    gain: FloatArray
    controls: _Controls | None
    limited: IndexArray
    output: IndexArray
    force_range: FloatArray
    servo: IndexArray
    left: IndexArray
    right: IndexArray
    left_dof: IndexArray
    right_dof: IndexArray
    place: IndexArray

    def add(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        dt: float,
        blocks: FloatArray,
        pull: FloatArray,
    ) -> None:
        """Adds δt D + δt² K to the blocks of A, and K v_0 to `pull` [nv]."""
        slope = self.bias
        if self.controls is not None:
            slope = slope + self.controls.read(model, data)[:, None] * self.gain
        slope = np.maximum(slope, 0.0)
        if len(self.limited):
            force = data.actuator_force[self.output[self.limited]]
            low, high = self.force_range[self.limited].T
            slope[self.limited[(force <= low) | (force >= high)]] = 0.0
        moment = data.actuator_moment
        square = moment[self.left] * moment[self.right]
        stiffness = slope[:, 0][self.servo] * square
        damping = slope[:, 1][self.servo] * square
        np.add.at(blocks, self.place, dt * damping + dt**2 * stiffness)
        np.add.at(pull, self.left_dof, stiffness * data.qvel[self.right_dof])


@dataclass(frozen=True)
class _Controls:
    """Where the controls of S actuators are: the last activation, or the control itself.

    Attributes:
        by_activation: Actuators that have one, and `activation` where it is.
        by_control: The others, and `control` where it is.
        low, high: limits of these.
    """

    count: int
    by_activation: IndexArray
    activation: IndexArray
    by_control: IndexArray
    control: IndexArray
    low: FloatArray
    high: FloatArray

    def read(self, model: mujoco.MjModel, data: mujoco.MjData) -> FloatArray:
        value = np.empty(self.count)
        value[self.by_activation] = data.act[self.activation]
        control = data.ctrl[self.control]
        if not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL):
            control = np.clip(control, self.low, self.high)
        value[self.by_control] = control
        return value


def servos_of(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> Servos | None:
    """The servos of a model, found out anew when its gains or transmissions change."""
    if not model.nu or model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION):
        return None
    key = (
        model.opt.disableactuator,
        model.actuator_gaintype.tobytes(),
        model.actuator_gainprm.tobytes(),
        model.actuator_biastype.tobytes(),
        model.actuator_biasprm.tobytes(),
        model.actuator_forcelimited.tobytes(),
        model.actuator_forcerange.tobytes(),
        model.actuator_ctrllimited.tobytes(),
        model.actuator_ctrlrange.tobytes(),
        data.moment_rownnz.tobytes(),
        data.moment_rowadr.tobytes(),
        data.moment_colind.tobytes(),
    )
    return layout.remember("servos", key, lambda: _find_servos(model, data, layout))


def _find_servos(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> Servos | None:
    has_gain = model.actuator_gaintype == _AFFINE_GAIN
    has_bias = model.actuator_biastype == _AFFINE_BIAS
    bias = np.where(has_bias[:, None], -model.actuator_biasprm[:, 1:3], 0.0)
    gain = np.where(has_gain[:, None], -model.actuator_gainprm[:, 1:3], 0.0)
    affine = has_gain | (has_bias & (model.actuator_gaintype == _FIXED_GAIN))
    which = np.flatnonzero(affine & ((bias > 0) | (gain != 0)).any(axis=1) & ~_disabled(model))
    output = _outputs(model)[which]
    rows = [_row(data, int(row)) for row in output]
    trees = [np.unique(layout.tree_of_dof[dofs]) for _, dofs in rows]
    # One that moves nothing, or two trees, is left out.
    kept = [i for i in range(len(which)) if len(trees[i]) == 1]
    if not kept:
        return None
    which, output = which[kept], output[kept]
    rows = [rows[i] for i in kept]
    count = np.array([len(dofs) for _, dofs in rows])
    left_dof = np.concatenate([np.repeat(dofs, len(dofs)) for _, dofs in rows])
    right_dof = np.concatenate([np.tile(dofs, len(dofs)) for _, dofs in rows])
    every = np.arange(len(which))
    return Servos(
        bias=bias[which],
        gain=gain[which],
        controls=_find_controls(model, which) if gain[which].any() else None,
        limited=np.flatnonzero(model.actuator_forcelimited.ravel()[output]),
        output=output,
        force_range=model.actuator_forcerange.reshape(-1, 2)[output],
        servo=np.repeat(every, count**2),
        left=np.concatenate([np.repeat(place, len(place)) for place, _ in rows]),
        right=np.concatenate([np.tile(place, len(place)) for place, _ in rows]),
        left_dof=left_dof,
        right_dof=right_dof,
        place=layout.index(left_dof, right_dof),
    )


def _row(data: mujoco.MjData, row: int) -> tuple[IndexArray, IndexArray]:
    """Where the moment arms of one actuator are, and their dofs."""
    start, count = int(data.moment_rowadr[row]), int(data.moment_rownnz[row])
    place = np.arange(start, start + count)
    return place, data.moment_colind[place].astype(np.int64)


def _find_controls(model: mujoco.MjModel, which: IndexArray) -> _Controls:
    has_activation = model.actuator_actnum[which] > 0
    by_activation = np.flatnonzero(has_activation)
    by_control = np.flatnonzero(~has_activation)
    active = which[by_activation]
    control = getattr(model, "actuator_ctrladr", np.arange(model.nu))[which[by_control]]
    limited = model.actuator_ctrllimited.ravel()[control].astype(bool)
    low, high = model.actuator_ctrlrange.reshape(-1, 2)[control].T
    return _Controls(
        count=len(which),
        by_activation=by_activation,
        activation=(model.actuator_actadr + model.actuator_actnum - 1)[active].astype(np.int64),
        by_control=by_control,
        control=control.astype(np.int64),
        low=np.where(limited, low, -np.inf),
        high=np.where(limited, high, np.inf),
    )


def _outputs(model: mujoco.MjModel) -> IndexArray:
    """Row of each actuator's force and moment; versions before 4 have one each."""
    if hasattr(model, "actuator_outadr"):
        adr: IndexArray = model.actuator_outadr.astype(np.int64)
        return adr
    return np.arange(model.nu)


def _disabled(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Actuators of groups that are switched off."""
    group = model.actuator_group
    in_range = (group >= 0) & (group < _MOST_GROUPS)
    bits = np.where(in_range, 1 << np.where(in_range, group, 0), 0)
    disabled: NDArray[np.bool_] = (bits & model.opt.disableactuator) != 0
    return disabled
