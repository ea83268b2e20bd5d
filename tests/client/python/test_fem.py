"""Deformable bodies: closed forms of elasticity, and contact of bodies solved as coupled trees."""

from __future__ import annotations

import numpy as np
import pytest
import sap_islands as sap
from sap_islands import fem
from sap_islands.arrays import FloatArray

YOUNG, POISSON, DENSITY = 1e5, 0.3, 1000.0


def solid(cells: tuple[int, int, int], size: tuple[float, float, float]) -> fem.Solid:
    nodes, tetrahedra = fem.grid(cells, size)
    return fem.Solid(nodes, tetrahedra, DENSITY, YOUNG, POISSON)


def rotation(axis: FloatArray, angle: float) -> FloatArray:
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turned: FloatArray = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    return turned


def dense(matrices: fem.ElementMatrices, count: int) -> tuple[FloatArray, FloatArray]:
    """Forces, and the stiffness matrix of the whole."""
    force = np.zeros((count, 3))
    np.add.at(force, matrices.nodes, matrices.forces)
    K = np.zeros((count, 3, count, 3))
    for nodes, stiffness in zip(matrices.nodes, matrices.stiffness, strict=True):
        for k, a in enumerate(nodes):
            for m, b in enumerate(nodes):
                K[a, :, b] += stiffness[k, :, m]
    return force, K.reshape(3 * count, 3 * count)


def test_a_grid_fills_its_box_with_tetrahedra_of_positive_volume() -> None:
    nodes, tetrahedra = fem.grid((2, 3, 1), (1.0, 0.6, 0.5))
    corners = nodes[tetrahedra]
    volumes = np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6
    assert (volumes > 0).all()
    assert volumes.sum() == pytest.approx(0.3)
    assert solid((2, 3, 1), (1.0, 0.6, 0.5)).masses.sum() == pytest.approx(300.0)


def test_a_body_moved_rigidly_has_no_force_and_its_stiffness_is_turned_with_it() -> None:
    body = solid((2, 1, 1), (0.2, 0.1, 0.1))
    R = rotation(np.array([1.0, 2.0, -0.5]), 2.4)
    x = body.rest @ R.T + [0.3, -1.0, 2.0]
    force, K = dense(body.evaluate(x), len(x))
    assert abs(force).max() <= 1e-10 * YOUNG * 0.1
    spin = np.cross([0.3, 0.2, 0.9], x).ravel()
    assert abs(K @ spin).max() <= 1e-9 * abs(K).max()
    assert np.linalg.eigvalsh(K).min() >= -1e-9 * abs(K).max()


def test_a_bar_under_tension_stretches_as_hooke_says() -> None:
    length, side, stretch = 0.4, 0.1, 1e-3
    body = solid((4, 1, 1), (length, side, side))
    x = body.rest * [1 + stretch, 1 - POISSON * stretch, 1 - POISSON * stretch]
    force, _ = dense(body.evaluate(x), len(x))
    end = body.rest[:, 0] == length
    inside = (body.rest[:, 0] > 0) & ~end
    assert abs(force[inside]).max() <= 1e-10
    assert force[end].sum(axis=0) == pytest.approx(
        [-YOUNG * stretch * side**2, 0, 0], abs=1e-9, rel=1e-9
    )


def test_a_cantilever_of_ever_finer_cells_deflects_as_a_beam() -> None:
    length, side, load = 1.0, 0.1, 1e-3
    exact = load * length**3 / (3 * YOUNG * side**4 / 12)
    stiffness = []  # over that of the beam
    for cells in ((10, 1, 1), (20, 2, 2)):
        body = solid(cells, (length, side, side))
        _, K = dense(body.evaluate(body.rest), len(body.rest))
        free = np.repeat(body.rest[:, 0] > 0, 3)
        tip = np.isclose(body.rest[:, 0], length)
        pull = np.zeros((len(body.rest), 3))
        pull[tip, 2] = load / tip.sum()
        u = np.zeros(3 * len(body.rest))
        u[free] = np.linalg.solve(K[np.ix_(free, free)], pull.ravel()[free])
        stiffness.append(exact / u.reshape(-1, 3)[tip, 2].mean())
    # Linear tetrahedra are too stiff in bending, by an error with the square of their size.
    coarse, fine = stiffness
    assert (4 * fine - coarse) / 3 == pytest.approx(1, abs=0.15)


def test_a_hanging_cable_carries_its_weight_at_its_ends() -> None:
    count, gravity = 21, 9.81
    cable = fem.Cable(np.full(count - 1, 0.05), linear_density=0.2, stretch_stiffness=1e4)
    x = np.column_stack((np.linspace(0, 0.8, count), np.zeros(count), np.zeros(count)))
    x[1:-1, 2] -= 0.2
    v = np.zeros((count, 3))
    for _ in range(600):
        trees = fem.step(cable, x, v, 0.02, damping=0.1, fixed=[0, count - 1])
        v = 0.9 * trees.free_motion_velocity.reshape(-1, 3)
        x = x + 0.02 * v
    force, _ = dense(cable.evaluate(x), count)
    weight = cable.masses * gravity
    assert force[1:-1, 2] == pytest.approx(weight[1:-1], rel=1e-3)
    assert -(force[0, 2] + force[-1, 2]) == pytest.approx(weight[1:-1].sum(), rel=1e-3)
    # A catenary: the slope changes by the weight over the constant horizontal tension.
    slope = np.diff(x[:, 2]) / np.diff(x[:, 0])
    assert np.diff(slope) == pytest.approx(weight[1:-1] / abs(force[0, 0]), rel=1e-2)


def test_a_block_at_rest_presses_on_the_floor_with_its_weight() -> None:
    body = solid((2, 2, 2), (0.1, 0.1, 0.1))
    time_step, x, v = 0.01, body.rest.copy(), np.zeros((27, 3))
    floor = np.flatnonzero(body.rest[:, 2] == 0)
    client = sap.connect("embedded:")
    for _ in range(150):
        trees = fem.step(body, x, v, time_step, damping=0.02)
        ground = fem.contacts(floor[:, None], np.ones((9, 1)), [0, 0, 1], x[floor, 2])
        solution = client.solve(sap.Problem(time_step, trees=trees, contacts=ground))
        assert solution.solved
        v = solution.velocity.reshape(-1, 3)
        x = x + time_step * v
    pressed = solution.impulse.reshape(-1, 3)[:, 2].sum() / time_step
    assert pressed == pytest.approx(body.masses.sum() * 9.81, rel=1e-3)
    # A column of height h shortens by rho g h² / 2 E under its own weight, less on a floor that
    # holds its sides.
    shortened = 0.1 - x[body.rest[:, 2] == 0.1, 2].mean()
    assert 0.5 < shortened / (DENSITY * 9.81 * 0.1**2 / (2 * YOUNG)) < 1.0
    client.close()


def test_a_point_of_a_face_moves_with_its_nodes_and_leaves_out_those_of_weight_0() -> None:
    ground = fem.contacts(
        [[4, 2, 7], [1, 3, 5]], [[0.2, 0.3, 0.5], [0.25, 0, 0.75]], [0, 0.6, 0.8], 0
    )
    assert ground.parts.tolist() == [3, 2]
    assert ground.part_tree.tolist() == [4, 2, 7, 1, 5]
    blocks = ground.jacobian.reshape(-1, 3, 3)
    assert blocks[:3].sum(axis=0) @ blocks[:3].sum(axis=0).T == pytest.approx(np.eye(3))
    assert blocks[2][2] == pytest.approx([0, 0.3, 0.4])
