"""Where the fields of MuJoCo's structs are."""

from __future__ import annotations

import ctypes

import mujoco
import pytest
from sap_islands.mujoco.fields import make_field_table


def model_and_data() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body><joint/><geom size=".1"/><body><joint damping="2"/>
        <geom size=".1"/></body></body></worldbody></mujoco>"""
    )
    return model, mujoco.MjData(model)


def test_numbers_and_arrays_are_where_the_table_says() -> None:
    model, data = model_and_data()
    data.qvel[:] = 3.0, 4.0
    names = "integer nv\nreal timestep\narray double dof_damping\narray double qvel\n"
    nv, timestep, damping, qvel = make_field_table(names).rows.tolist()
    assert [row[0] for row in (nv, timestep, damping, qvel)] == [0, 0, 0, 1]
    assert ctypes.c_int64.from_address(model._address + nv[1]).value == 2
    assert ctypes.c_double.from_address(model._address + timestep[1]).value == model.opt.timestep
    address = ctypes.c_int64.from_address(data._address + qvel[1]).value
    assert list((ctypes.c_double * 2).from_address(address)) == [3.0, 4.0]


def test_arrays_that_former_versions_lack_are_marked() -> None:
    (row,) = make_field_table("array double actuator_damping\n").rows.tolist()
    assert (row[0] == -1) == (not hasattr(mujoco.MjModel, "actuator_damping"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("array double qvelocity", "has no qvelocity"),
        ("array int32_t qvel", "qvel has type .*; int32_t is needed"),
        ("constant mjtJoint mjJNT_HINGE 2", "mjJNT_HINGE is 3; 2 is needed"),
    ],
)
def test_mujoco_with_other_fields_types_or_constants_is_refused(names: str, message: str) -> None:
    with pytest.raises(ImportError, match=message):
        make_field_table(names)
