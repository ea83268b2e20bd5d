"""Rows of the problem along single joint velocities: drives, limits, friction.

A drive has R = 1 / (δt (δt k + d)) and v̂ = (k (q_d - q) + d q̇_d) / (δt k + d), within its effort
limit. A limit has γ >= 0 and v̂ = -room / δt, or half of the way back where it is broken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import newton
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.newton.coordinates import Coordinates
from sap_islands.newton.dynamics import Dynamics
from sap_islands.newton.layout import Indices, Layout, numpy_of
from sap_islands.problem import ConstraintRows

_MODE = newton.JointTargetMode
_FRICTION_SLIP = 1e-3  # R = this times w, as dry friction has it [-]
_REACH_SPEED = 100.0  # limits farther than this times a step are no rows [m/s, rad/s]
_LARGEST_RETURN = 10.0  # [m/s, rad/s]


@dataclass
class _Rows:
    velocity: list[Indices] = field(default_factory=list)
    arrays: dict[str, list[FloatArray]] = field(default_factory=dict)

    def add(self, velocity: Indices, **values: FloatArray | float) -> None:
        self.velocity.append(velocity)
        for name, default in _DEFAULTS.items():
            value = np.broadcast_to(values.get(name, default), velocity.shape)
            self.arrays.setdefault(name, []).append(value)


_DEFAULTS = {
    "coefficient": 1.0,
    "target_velocity": 0.0,
    "force_lower": -np.inf,
    "force_upper": np.inf,
    "regularization": 0.0,
    "slip_parameter": 0.0,
}


def make_rows(
    model: newton.Model,
    layout: Layout,
    coordinates: Coordinates,
    control: newton.Control,
    dynamics: Dynamics,
    time_step: float,
) -> ConstraintRows:
    """The rows of the joints of all trees."""
    q_of_dof = coordinates.of_dof
    if not layout.trees:
        return ConstraintRows.none()
    dof = np.flatnonzero((layout.velocity_of_dof >= 0) & (q_of_dof >= 0))
    rows = _Rows()
    _add_drives(rows, model, layout, control, dynamics, dof, q_of_dof, time_step)
    friction = numpy_of(model.joint_friction)
    rough = dof[friction[dof] > 0]
    rows.add(
        layout.velocity_of_dof[rough],
        force_lower=-friction[rough],
        force_upper=friction[rough],
        slip_parameter=_FRICTION_SLIP,
    )
    _add_limits(rows, model, layout, dynamics, dof, q_of_dof, time_step)
    velocity = np.concatenate(rows.velocity)
    if not len(velocity):
        return ConstraintRows.none()
    return ConstraintRows(
        entries=np.ones(len(velocity), np.uint32),
        velocity_index=velocity.astype(np.uint32),
        **{name: np.concatenate(values) for name, values in rows.arrays.items()},
    )


def _add_drives(
    rows: _Rows,
    model: newton.Model,
    layout: Layout,
    control: newton.Control,
    dynamics: Dynamics,
    dof: Indices,
    q_of_dof: Indices,
    time_step: float,
) -> None:
    mode = model.joint_target_mode.numpy()[dof]
    follows_q = (mode == _MODE.POSITION) | (mode == _MODE.POSITION_VELOCITY)
    follows_qd = (mode == _MODE.VELOCITY) | (mode == _MODE.POSITION_VELOCITY)
    k = np.where(follows_q, numpy_of(model.joint_target_ke)[dof], 0)
    d = np.where(follows_q | follows_qd, numpy_of(model.joint_target_kd)[dof], 0)
    driven = time_step * k + d > 0
    dof, k, d, follows_qd = (a[driven] for a in (dof, k, d, follows_qd))
    if not len(dof):
        return
    q, q_d = (a[q_of_dof[dof]] for a in (dynamics.q, numpy_of(control.joint_target_q)))
    qd_d = np.where(follows_qd, numpy_of(control.joint_target_qd)[dof], 0)
    gain = time_step * k + d
    effort = numpy_of(model.joint_effort_limit)[dof]
    rows.add(
        layout.velocity_of_dof[dof],
        target_velocity=(k * (q_d - q) + d * qd_d) / gain,
        regularization=1 / (time_step * gain),
        force_lower=-effort,
        force_upper=effort,
    )


def _add_limits(
    rows: _Rows,
    model: newton.Model,
    layout: Layout,
    dynamics: Dynamics,
    dof: Indices,
    q_of_dof: Indices,
    time_step: float,
) -> None:
    q, qd = dynamics.q[q_of_dof[dof]], dynamics.qd[dof]
    largest = numpy_of(model.joint_velocity_limit)[dof]
    lower, upper = numpy_of(model.joint_limit_lower)[dof], numpy_of(model.joint_limit_upper)[dof]
    for sign, room in ((1.0, q - lower), (-1.0, upper - q)):
        back = np.minimum(-room / (2 * time_step), _LARGEST_RETURN)
        v_hat = np.maximum(np.where(room >= 0, -room / time_step, back), -largest)
        near = sign * qd - v_hat < 2 * np.abs(qd) + _REACH_SPEED
        rows.add(
            layout.velocity_of_dof[dof[near]],
            coefficient=sign,
            target_velocity=v_hat[near],
            force_lower=0.0,
        )
