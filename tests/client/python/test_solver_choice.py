"""The count of work by which `sap-islands run` chooses between two solvers."""

from __future__ import annotations

import ctypes

import mujoco
import numpy as np
import pytest
from sap_islands.binaries import find_c_library
from sap_islands.mujoco.native_calls import load_native_calls

from support import mujoco_program

NAMES = ("rows", "cones", "entries_squared", "dofs_squared", "tree_cubes", "flops", "fill")


def count_work(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, float]:
    numbers = (ctypes.c_double * len(NAMES))()
    table, model_address, data_address, flags = load_native_calls().state(model, data, False)
    arguments = (ctypes.c_void_p(each) for each in (table, model_address, data_address))
    ctypes.CDLL(find_c_library()).sap_mujoco_count_work(*arguments, flags, numbers)
    return dict(zip(NAMES, numbers, strict=True))


def eliminate(joined: np.ndarray) -> tuple[float, float]:
    """Multiplications and entries of a Cholesky from the last tree of six dofs to the first."""
    multiplications, entries = 0.0, 0.0
    for tree in range(len(joined) - 1, -1, -1):
        below = np.flatnonzero(joined[tree, :tree])
        joined[np.ix_(below, below)] = True
        m = 6.0 * len(below)
        multiplications += 6.0 * (12.0 + 6.0 * m + m * m)
        entries += 6.0 * (3.0 + m)
    return multiplications, entries


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_fill_is_that_of_an_elimination_in_the_order_of_mujoco(jacobian: str, cone: str) -> None:
    model = mujoco_program.pile(14, f'jacobian="{jacobian}" cone="{cone}"')
    data = mujoco.MjData(model)
    mujoco_program.run(model, data, 150)
    geoms = data.contact.geom[data.contact.efc_address >= 0]
    trees = model.body_treeid[model.geom_bodyid[geoms]]
    joined = np.eye(model.ntree, dtype=bool)
    for a, b in trees[(trees >= 0).all(axis=1)]:
        joined[a, b] = joined[b, a] = True
    flops, fill = eliminate(joined)
    counted = count_work(model, data)
    assert counted["flops"] == pytest.approx(flops)
    assert counted["fill"] == pytest.approx(fill)
    assert flops > 1.2 * 14 * 6.0 * 12.0  # there is fill to count
    assert counted["rows"] == data.nefc
    assert counted["cones"] == (len(geoms) if cone == "elliptic" else 0)
    both = (trees >= 0).sum(axis=1)
    rows = 3 if cone == "elliptic" else 4
    assert counted["dofs_squared"] == pytest.approx(float((rows * (6.0 * both) ** 2).sum()))
