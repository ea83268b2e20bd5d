"""Makes the rows of a problem from what the loops wrote."""

from __future__ import annotations

from sap_islands.mujoco.native_calls import Buffers
from sap_islands.problem import ConstraintRows


def make_rows(buffers: Buffers, with_slip: bool) -> ConstraintRows:
    """The rows of MuJoCo, then those of actuators and tendons."""
    layout, doubles, unsigned, _ = buffers
    rows, capacity = layout.rows, layout.row_capacity
    if not rows:
        return ConstraintRows.none()
    coefficient, non_zeros = layout.coefficient, layout.non_zeros
    laws = doubles[layout.laws : coefficient].reshape(6, capacity)[:, :rows]
    R, v_hat, lower, upper, offset, slip = laws
    named = {
        "entries": unsigned[:rows],
        "velocity_index": unsigned[capacity : capacity + non_zeros],
        "coefficient": doubles[coefficient : coefficient + non_zeros],
        "regularization": R,
        "target_velocity": v_hat,
        "force_lower": lower,
        "force_upper": upper,
    }
    if rows > layout.simulator_rows:
        named["force_offset"] = offset
    if with_slip:
        named["slip_parameter"] = slip
    return ConstraintRows.from_wire_arrays(**named)
