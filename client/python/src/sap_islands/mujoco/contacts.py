"""Makes the contacts of a problem from what the loops wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_calls import Buffers
from sap_islands.problem import Contacts


def make_contacts(buffers: Buffers, as_sap: bool, material: Material) -> Contacts:
    """The contacts; under MuJoCo's law, `not as_sap`, the material is not read."""
    layout, doubles, unsigned, integers = buffers
    count = layout.contacts
    if not count:
        return Contacts.none()
    scalars, rolling, target = layout.scalars, layout.rolling, layout.target
    # Coefficients of friction along t1, t2 and about n, R_t, R_n, and the physical law.
    scalar = doubles[scalars:rolling].reshape(8, count)
    friction = scalar[0]
    v_hat = doubles[target : target + 3 * count].reshape(count, 3)
    trees = layout.trees
    named: dict[str, NDArray[Any]] = {
        "jacobian": doubles[layout.jacobian : layout.angular],
        "friction": friction,
    }
    if layout.part_trees:
        named["parts"] = unsigned[layout.parts : layout.parts + count]
        named["part_tree"] = integers[trees : trees + layout.part_trees]
    else:
        named["tree_a"] = integers[trees : trees + count]
        named["tree_b"] = integers[trees + count : trees + 2 * count]
    if as_sap and (material.stiffness is not None or material.relaxation_time is not None):
        named.update(_physical_law(scalar[5:], v_hat, material))
    else:
        named["relaxation_time"] = np.zeros(count)
        named["target_velocity"] = v_hat
        named["regularization_n"] = scalar[4]
        if not as_sap:
            named["regularization_t"] = scalar[3]
    if material.friction is not None and as_sap:
        scalar[:2] = material.friction
    elif layout.two_frictions:
        named["friction_2"] = scalar[1]
    if layout.turning:
        named["torsional_friction"] = scalar[2]
        named["rolling_friction"] = doubles[rolling:target].reshape(count, 2)
        named["angular_jacobian"] = doubles[layout.angular : scalars]
        named["target_angular_velocity"] = doubles[layout.target_angular : layout.servos].reshape(
            layout.turning, 3
        )
    return Contacts.from_wire_arrays(**named)


def _physical_law(
    physical: FloatArray, v_hat: FloatArray, material: Material
) -> dict[str, FloatArray]:
    """The normal force by stiffness and relaxation time; MuJoCo's where the material has none."""
    named = dict(zip(("signed_distance", "stiffness", "relaxation_time"), physical, strict=True))
    for name in ("stiffness", "relaxation_time"):
        given = getattr(material, name)
        if given is not None:
            named[name] = np.full(len(v_hat), float(given))
    v_hat[:, 2] = 0.0
    if v_hat.any():
        named["surface_velocity"] = -v_hat
    return named
