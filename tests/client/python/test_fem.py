"""Deformable bodies: closed forms of elasticity, and contact of bodies solved as coupled trees."""

from __future__ import annotations

from pathlib import Path

import meshio
import numpy as np
import pytest
import sap_islands as sap
from sap_islands import fem
from sap_islands.arrays import FloatArray
from sap_islands.fem.block_tridiagonal import solve
from scipy.optimize import brentq

YOUNG, POISSON, DENSITY = 1e5, 0.3, 1000.0


def solid(cells: tuple[int, int, int], size: tuple[float, float, float]) -> fem.Solid:
    nodes, tetrahedra = fem.grid(cells, size)
    return fem.Solid(nodes, tetrahedra, DENSITY, YOUNG, POISSON)


def rotation(axis: FloatArray, angle: float) -> FloatArray:
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turned: FloatArray = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    return turned


def forces(material: fem.Material, x: FloatArray) -> FloatArray:
    force = np.zeros(x.shape)
    for elements in material.evaluate(x):
        np.add.at(force, elements.nodes, elements.forces)
    return force


def stiffness(material: fem.Material, x: FloatArray) -> FloatArray:
    """The stiffness matrix of the whole."""
    K = np.zeros((len(x), 3, len(x), 3))
    for elements in material.evaluate(x):
        for nodes, block in zip(elements.nodes, elements.stiffness, strict=True):
            for k, a in enumerate(nodes):
                for m, b in enumerate(nodes):
                    K[a, :, b] += block[k, :, m]
    return K.reshape(3 * len(x), 3 * len(x))


def energy(material: fem.Material, x: FloatArray) -> float:
    return float(sum(elements.energy.sum() for elements in material.evaluate(x)))


def deflection(
    material: fem.Material, x: FloatArray, held: list[int], loaded: list[int], load: float
) -> float:
    """How far a load along z, in equal parts on some nodes, moves them by linear elasticity."""
    free = np.ones(x.shape, bool)
    free[held] = False
    pull = np.zeros(x.shape)
    pull[loaded, 2] = load / len(loaded)
    K = stiffness(material, x)[np.ix_(free.ravel(), free.ravel())]
    u = np.zeros(x.shape)
    u[free] = np.linalg.solve(K, pull[free])
    return float(u[loaded, 2].mean())


def equilibrium(material: fem.Material, x: FloatArray, load: FloatArray) -> FloatArray:
    """Where a body comes to rest under forces on its nodes, by steps with large damping."""
    v = np.zeros(x.shape)
    for _ in range(200):
        trees = fem.step(material, x, v, 0.05, (0, 0, 0), damping=0.02, forces=load)
        v = 0.5 * trees.free_motion_velocity.reshape(-1, 3)
        x = x + 0.05 * v
    return x


RNG = np.random.default_rng(7)
GRID, SHEET = fem.grid((2, 1, 1), (0.2, 0.1, 0.1)), fem.sheet((3, 2), (0.3, 0.2))
CLOTH = fem.Membrane(*SHEET, 1e-3, 300.0, 1e6, 0.3)
STIFF_FOLDS = fem.Membrane(*SHEET, 1e-3, 300.0, 1.0, 0.3, rigidity=1.0)
ROPE = fem.Cable(np.full(5, 0.05), 0.2, 1e4, bending_stiffness=1.0)
ALONG = np.column_stack((np.arange(6) * 0.06, np.zeros((6, 2))))
MATERIALS = {
    "corotated": (fem.Solid(*GRID, DENSITY, YOUNG, POISSON), GRID.nodes),
    "neo-Hookean": (fem.Solid(*GRID, DENSITY, YOUNG, POISSON, fem.neo_hookean), GRID.nodes),
    "membrane": (CLOTH, SHEET.nodes),
    "folds": (STIFF_FOLDS, SHEET.nodes),
    "cable": (ROPE, ALONG),
}
each_material = pytest.mark.parametrize(("material", "rest"), MATERIALS.values(), ids=MATERIALS)


@each_material
def test_forces_are_the_slope_of_the_energy(material: fem.Material, rest: FloatArray) -> None:
    x = rest + RNG.normal(0, 0.015, rest.shape)
    force, h = forces(material, x), 1e-6
    for node in range(len(x)):
        for axis in range(3):
            there, back = x.copy(), x.copy()
            there[node, axis] += h
            back[node, axis] -= h
            slope = (energy(material, there) - energy(material, back)) / (2 * h)
            assert force[node, axis] == pytest.approx(-slope, abs=1e-7 * abs(force).max())


@each_material
def test_stiffness_is_positive_semidefinite_however_a_body_is_deformed(
    material: fem.Material, rest: FloatArray
) -> None:
    for scale in (0.005, 0.05, 0.2):
        K = stiffness(material, rest + RNG.normal(0, scale, rest.shape))
        assert abs(K - K.T).max() <= 1e-12 * abs(K).max()
        assert np.linalg.eigvalsh(K).min() >= -1e-12 * abs(K).max()


@each_material
def test_forces_have_neither_a_sum_nor_a_moment(material: fem.Material, rest: FloatArray) -> None:
    x = rest + RNG.normal(0, 0.02, rest.shape)
    force = forces(material, x)
    assert abs(force.sum(axis=0)).max() <= 1e-12 * abs(force).max()
    assert abs(np.cross(x, force).sum(axis=0)).max() <= 1e-12 * abs(force).max()


@each_material
def test_a_step_of_a_turned_body_is_the_step_turned(
    material: fem.Material, rest: FloatArray
) -> None:
    x, v = rest + RNG.normal(0, 0.01, rest.shape), RNG.normal(size=rest.shape)
    R, moved = rotation(np.array([1.0, 2.0, -0.5]), 2.4), [0.3, -1.0, 2.0]
    gravity = np.array([0, 0, -9.81])
    here = fem.step(material, x, v, 0.01, gravity, damping=0.01)
    there = fem.step(material, x @ R.T + moved, v @ R.T, 0.01, R @ gravity, damping=0.01)
    v_star = here.free_motion_velocity.reshape(-1, 3)
    assert there.free_motion_velocity.reshape(-1, 3) == pytest.approx(v_star @ R.T, abs=1e-9)
    # Momentum changes by gravity alone.
    momentum = material.masses @ (v_star - v)
    assert momentum == pytest.approx(material.masses.sum() * 0.01 * gravity, abs=1e-9)


@pytest.mark.parametrize("material", [fem.Solid(*GRID, DENSITY, YOUNG, POISSON), CLOTH])
def test_stiffness_of_what_is_stretched_is_the_slope_of_the_forces(material: fem.Material) -> None:
    rest = GRID.nodes if isinstance(material, fem.Solid) else SHEET.nodes
    x = rest if isinstance(material, fem.Solid) else rest * [1.1, 1.2, 1.0]
    K, h = stiffness(material, x), 1e-6
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = h
        moved = step.reshape(x.shape)
        slope = (forces(material, x - moved) - forces(material, x + moved)) / (2 * h)
        assert K[i] == pytest.approx(slope.ravel(), abs=1e-6 * abs(K).max())


@pytest.mark.parametrize("law", [fem.corotated, fem.neo_hookean])
def test_both_laws_are_linear_elasticity_at_small_strain(law: fem.Law) -> None:
    body = fem.Solid(*GRID, DENSITY, YOUNG, POISSON, law)
    strain = np.array([[2.0, 0.5, -0.3], [0.5, -1.0, 0.2], [-0.3, 0.2, 0.7]]) * 1e-5
    mu, lame = YOUNG / 2.6, YOUNG * 0.3 / (1.3 * 0.4)
    hooke = mu * (strain**2).sum() + 0.5 * lame * np.trace(strain) ** 2
    x = GRID.nodes @ (np.eye(3) + strain)
    assert energy(body, x) == pytest.approx(2e-3 * hooke, rel=1e-3)


def test_a_block_inflated_by_tension_on_all_sides_is_as_large_as_its_law_says() -> None:
    mesh = fem.grid((2, 2, 2), (0.1, 0.1, 0.1))
    body = fem.Solid(*mesh, DENSITY, YOUNG, 0.4, fem.neo_hookean)
    tension = 0.8 * YOUNG
    # Each face of the surface pulls at its corners with a third of its area.
    faces = fem.surface(mesh.elements)
    a, b, c = mesh.nodes[faces].transpose(1, 0, 2)
    load = np.zeros(mesh.nodes.shape)
    for corner in range(3):
        np.add.at(load, faces[:, corner], tension * np.cross(b - a, c - a) / 6)
    x = equilibrium(body, mesh.nodes, load)
    mu, lame = YOUNG / 2.8, YOUNG * 0.4 / (1.4 * 0.2)
    m, k = 4 / 3 * mu, lame + 5 / 6 * mu

    def excess(stretch: float) -> float:
        volume = k * (stretch**3 - 1 - 0.75 * m / k) * stretch**2
        return m * stretch * (1 - 1 / (3 * stretch**2 + 1)) + volume - tension

    stretch = brentq(excess, 1.0, 3.0)
    assert stretch > 1.1
    assert np.ptp(x, axis=0) == pytest.approx(0.1 * stretch, rel=1e-6)


def equilateral(rows: int, columns: int, side: float) -> fem.Mesh:
    """A strip along x whose rows of triangles lie across it."""
    row, column = np.divmod(np.arange((rows + 1) * (columns + 1)), columns + 1)
    across = side * (column - (row % 2) / 2)
    nodes = np.column_stack((side * np.sqrt(0.75) * row, across, np.zeros(len(row))))
    triangles = []
    for i in range(rows):
        for a in range(i * (columns + 1), i * (columns + 1) + columns):
            up = a + columns + 1
            odd = [(a, up, a + 1), (a + 1, up, up + 1)]
            triangles += odd if i % 2 else [(a, up + 1, a + 1), (a, up, up + 1)]
    return fem.Mesh(nodes, np.array(triangles))


@pytest.mark.parametrize("degrees", [0, 30, 45, 90])
@pytest.mark.parametrize(
    ("mesh", "along_diagonals"),
    [(fem.sheet((40, 40), (1.0, 1.0)), 1.5), (equilateral(40, 40, 0.025), 1.0)],
    ids=["squares", "equilateral"],
)
def test_a_sheet_rolled_up_has_the_bending_energy_of_a_plate(
    mesh: fem.Mesh, along_diagonals: float, degrees: float
) -> None:
    rigidity, curvature = 0.7, 1e-3
    sheet = fem.Membrane(*mesh, 1e-3, 300.0, 1e-6, 0.3, rigidity)
    along = mesh.nodes[:, :2] @ [np.cos(np.radians(degrees)), np.sin(np.radians(degrees))]
    x = mesh.nodes + 0.5 * curvature * np.outer(along**2, [0, 0, 1])
    plate = 0.5 * rigidity * curvature**2 * sheet.masses.sum() / (300.0 * 1e-3)
    stiffer = 1 + (along_diagonals - 1) * np.sin(2 * np.radians(degrees)) ** 2
    # At its rim the sheet ends without hinges, one in forty.
    assert sheet.evaluate(x)[1].energy.sum() == pytest.approx(stiffer * plate, rel=0.03)


def test_a_strip_of_cloth_bends_under_a_load_as_a_beam() -> None:
    mesh = equilateral(40, 8, 0.025)
    sheet = fem.Membrane(*mesh, 1e-3, 300.0, 1e6, 0.0, rigidity=0.5)
    row = 0.025 * np.sqrt(0.75)
    held = np.flatnonzero(mesh.nodes[:, 0] < 1.2 * row).tolist()
    tip = np.flatnonzero(mesh.nodes[:, 0] > 39.5 * row).tolist()
    # Clamped in the middle of its first row. A plate with Poisson's ratio 1/3 that may bend across
    # has 1 - 1/9 of the rigidity of one that is rolled.
    beam = 1e-3 * (39.5 * row) ** 3 / (3 * 0.5 * (8 / 9) * 0.2)
    assert deflection(sheet, mesh.nodes, held, tip, 1e-3) == pytest.approx(beam, rel=0.03)


def test_cloth_under_tension_stretches_as_hooke_says() -> None:
    stretch = 1e-4
    x = SHEET.nodes * [1 + stretch, 1 - 0.3 * stretch, 1.0]
    force = forces(CLOTH, x)
    end = np.isclose(SHEET.nodes[:, 0], 0.3)
    pull = -1e6 * stretch * 1e-3 * 0.2
    assert force[end].sum(axis=0) == pytest.approx([pull, 0, 0], abs=1e-3 * abs(pull))


def test_a_cable_bends_under_a_load_as_a_beam() -> None:
    count, bending = 81, 0.3
    cable = fem.Cable(np.full(count - 1, 1 / 80), 0.1, 1e4, bending)
    x = np.column_stack((np.linspace(0, 1, count), np.zeros((count, 2))))
    # Clamped in the middle of its first segment; a slack cable has no stiffness along itself.
    x[:, 0] *= 1 + 1e-9
    exact = 1e-2 * (1 - 0.5 / 80) ** 3 / (3 * bending)
    assert deflection(cable, x, [0, 1], [count - 1], 1e-2) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("parts", [1, 3])
def test_solves_with_a_mesh_are_those_of_the_whole_matrix(parts: int) -> None:
    mesh = fem.grid((4, 3, 6), (0.4, 0.3, 0.6))
    nodes = np.concatenate([mesh.nodes + np.array([i, 0, 0]) for i in range(parts)])
    tetrahedra = np.concatenate([mesh.elements + i * len(mesh.nodes) for i in range(parts)])
    shuffled = RNG.permutation(len(nodes))
    place = np.argsort(shuffled)
    body = fem.Solid(nodes[shuffled], place[tetrahedra], DENSITY, YOUNG, POISSON)
    trees = fem.step(body, body.rest, np.zeros(nodes.shape), 0.01)
    A = stiffness(body, body.rest) * 1e-4 + np.diag(np.repeat(body.masses, 3))
    right = RNG.normal(size=nodes.shape)
    blocks = trees.coupling_block.reshape(-1, 3, 3)
    a, b = trees.coupled_a.astype(np.int64), trees.coupled_b.astype(np.int64)
    u = solve(trees.dynamics_matrix.reshape(-1, 3, 3), a, b, blocks, right)
    assert A @ u.ravel() == pytest.approx(right.ravel(), abs=1e-9)


def test_a_grid_fills_its_box_with_tetrahedra_of_positive_volume() -> None:
    nodes, tetrahedra = fem.grid((2, 3, 1), (1.0, 0.6, 0.5))
    corners = nodes[tetrahedra]
    volumes = np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6
    assert (volumes > 0).all()
    assert volumes.sum() == pytest.approx(0.3)
    assert solid((2, 3, 1), (1.0, 0.6, 0.5)).masses.sum() == pytest.approx(300.0)


@pytest.mark.parametrize("law", [fem.corotated, fem.neo_hookean])
def test_a_body_moved_rigidly_has_no_force_and_no_stiffness_against_it(law: fem.Law) -> None:
    body = fem.Solid(*GRID, DENSITY, YOUNG, POISSON, law)
    R = rotation(np.array([1.0, 2.0, -0.5]), 2.4)
    x = body.rest @ R.T + [0.3, -1.0, 2.0]
    K = stiffness(body, x)
    assert abs(forces(body, x)).max() <= 1e-10 * YOUNG * 0.1
    spin = np.cross([0.3, 0.2, 0.9], x).ravel()
    assert abs(K @ spin).max() <= 1e-9 * abs(K).max()


def test_a_bar_under_tension_stretches_as_hooke_says() -> None:
    length, side, stretch = 0.4, 0.1, 1e-3
    body = solid((4, 1, 1), (length, side, side))
    x = body.rest * [1 + stretch, 1 - POISSON * stretch, 1 - POISSON * stretch]
    force = forces(body, x)
    end = body.rest[:, 0] == length
    inside = (body.rest[:, 0] > 0) & ~end
    assert abs(force[inside]).max() <= 1e-10
    assert force[end].sum(axis=0) == pytest.approx(
        [-YOUNG * stretch * side**2, 0, 0], abs=1e-9, rel=1e-9
    )


@pytest.mark.parametrize("law", [fem.corotated, fem.neo_hookean])
def test_a_cantilever_of_ever_finer_cells_deflects_as_a_beam(law: fem.Law) -> None:
    length, side, load = 1.0, 0.1, 1e-3
    exact = load * length**3 / (3 * YOUNG * side**4 / 12)
    too_stiff = []
    for cells in ((10, 1, 1), (20, 2, 2)):
        body = fem.Solid(*fem.grid(cells, (length, side, side)), DENSITY, YOUNG, POISSON, law)
        held = np.flatnonzero(body.rest[:, 0] == 0).tolist()
        tip = np.flatnonzero(np.isclose(body.rest[:, 0], length)).tolist()
        too_stiff.append(exact / deflection(body, body.rest, held, tip, load))
    # Linear tetrahedra are too stiff in bending, by an error with the square of their size.
    coarse, fine = too_stiff
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
    force = forces(cable, x)
    weight = cable.masses * gravity
    assert force[1:-1, 2] == pytest.approx(weight[1:-1], rel=1e-3)
    assert -(force[0, 2] + force[-1, 2]) == pytest.approx(weight[1:-1].sum(), rel=1e-3)
    # The catenary of this length between these ends.
    a = brentq(lambda a: 2 * a * np.sinh(0.4 / a) - 1.0, 0.05, 10.0)
    exact = a * (np.cosh((x[:, 0] - 0.4) / a) - np.cosh(0.4 / a))
    assert x[:, 2] == pytest.approx(exact, abs=1e-3)


def test_a_block_at_rest_presses_on_the_floor_with_its_weight() -> None:
    body = solid((2, 2, 2), (0.1, 0.1, 0.1))
    time_step, x, v = 0.01, body.rest.copy(), np.zeros((27, 3))
    floor = np.flatnonzero(body.rest[:, 2] == 0)
    feet = fem.Points(floor[:, None], np.ones((9, 1)))
    client = sap.connect("embedded:")
    for _ in range(150):
        trees = fem.step(body, x, v, time_step, damping=0.02)
        ground = fem.contacts(feet, [0, 0, 1], x[floor, 2])
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
    points = fem.Points(
        np.array([[4, 2, 7], [1, 3, 5]]), np.array([[0.2, 0.3, 0.5], [0.25, 0, 0.75]])
    )
    ground = fem.contacts(points, [0, 0.6, 0.8], 0.0)
    assert ground.parts.tolist() == [3, 2]
    assert ground.part_tree.tolist() == [4, 2, 7, 1, 5]
    blocks = ground.jacobian.reshape(-1, 3, 3)
    assert blocks[:3].sum(axis=0) @ blocks[:3].sum(axis=0).T == pytest.approx(np.eye(3))
    assert blocks[2][2] == pytest.approx([0, 0.3, 0.4])


def test_a_ball_thrown_flat_on_the_ground_begins_to_roll() -> None:
    mesh, radius, speed, friction, time_step = fem.ball(6, 0.1), 0.1, 1.0, 0.4, 0.005
    body = fem.Solid(*mesh, DENSITY, 1e6, POISSON)
    masses, mass = body.masses, body.masses.sum()
    x, v = mesh.nodes + np.array([0, 0, radius]), np.tile([speed, 0, 0], (len(mesh.nodes), 1))
    skin = np.unique(fem.surface(mesh.elements))
    forward: list[float] = []
    rim: list[float] = []
    pressed = 0.0
    with sap.connect("embedded:") as client:
        for _ in range(20):
            low = skin[x[skin, 2] < 0.02]
            points = fem.Points(low[:, None], np.ones((len(low), 1)))
            ground = fem.contacts(points, [0, 0, 1], x[low, 2], None, 1e5, time_step, friction)
            trees = fem.step(body, x, v, time_step, damping=0.002)
            solution = client.solve(sap.Problem(time_step, trees, contacts=ground))
            v = solution.velocity.reshape(-1, 3)
            x = x + time_step * v
            pressed += solution.impulse[:, 2].sum() if len(forward) < 10 else 0.0
            center, mean = masses @ x / mass, masses @ v / mass
            arm = x - center
            inertia = masses @ (arm[:, [0, 2]] ** 2).sum(axis=1)
            spin = masses @ np.cross(arm, v - mean)[:, 1] / inertia
            forward.append(mean[0])
            rim.append(spin * center[2])
    # It slides for a while, and friction slows it down.
    assert forward[9] == pytest.approx(speed - friction * pressed / mass, rel=1e-3)
    # Then it rolls, with the angular momentum about the line of contact that it began with, except
    # for what a ball with flat faces loses as it lands on them.
    assert forward[-1] == pytest.approx(rim[-1], rel=0.05)
    rolling = speed / (1 + inertia / (mass * radius**2))
    assert 0.93 < forward[-1] / rolling < 1.0


def test_what_a_body_pushes_is_pushed_back() -> None:
    jacobian = RNG.normal(size=(2, 3, 6))
    jacobian[:, :, :3] = np.eye(3)
    nodes = fem.Points(np.array([[3, 4, 5], [4, 5, 6]]), np.array([[0.2, 0.3, 0.5], [0.5, 0.5, 0]]))
    normal = np.array([[0, 0, 1.0], [0.6, 0.8, 0]])
    pair = fem.contacts(nodes, normal, 0.01, fem.Carried(np.array([9, 2]), jacobian))
    assert pair.parts.tolist() == [4, 3]
    assert pair.part_tree.tolist() == [3, 4, 5, 9, 4, 5, 2]
    frame = fem.contact_frames(normal)
    blocks = np.split(pair.jacobian, np.cumsum([9, 9, 9, 18, 9, 9]))
    assert sum(block.reshape(3, 3) for block in blocks[:3]) == pytest.approx(frame[0])
    assert blocks[3].reshape(3, 6) == pytest.approx(-frame[0] @ jacobian[0])
    assert blocks[6].reshape(3, 6) == pytest.approx(-frame[1] @ jacobian[1])
    assert np.linalg.det(frame) == pytest.approx(1)
    assert frame[:, 2] == pytest.approx(normal)


def test_contacts_and_trees_of_several_bodies_join_to_one_problem() -> None:
    arm = sap.Trees(dofs=[2], dynamics_matrix=np.eye(2).ravel(), free_motion_velocity=[0.0, 0.0])
    x, v = GRID.nodes, np.zeros(GRID.nodes.shape)
    body = fem.step(fem.Solid(*GRID, DENSITY, YOUNG, POISSON), x, v, 0.01)
    trees = fem.join_trees([arm, body, body])
    assert trees.count == 25
    assert trees.coupled_a[: len(body.coupled_a)].tolist() == (body.coupled_a + 1).tolist()
    assert trees.coupled_b[len(body.coupled_b) :].tolist() == (body.coupled_b + 13).tolist()
    by_pair = sap.Contacts([0], [1], np.ones(15), 0.0, 1e5, 0.0, 0.5)
    by_parts = fem.contacts(fem.Points(np.array([[7]]), np.ones((1, 1))), [0, 0, 1], 0.0)
    both = fem.join_contacts([by_pair, by_parts, sap.Contacts.none()])
    assert both.parts.tolist() == [2, 1]
    assert both.part_tree.tolist() == [0, 1, 7]
    assert both.stiffness.tolist() == [1e5, 1e7]
    with sap.connect("embedded:") as client:
        assert client.solve(sap.Problem(0.01, trees=trees, contacts=both)).solved
    assert trees.guess_velocity[:2].tolist() == [0.0, 0.0]
    body.tree_id = np.arange(12)
    with pytest.raises(sap.InvalidArgument, match="tree_id of trees cannot be joined"):
        fem.join_trees([arm, body])
    by_pair.adhesion = 1.0
    with pytest.raises(sap.InvalidArgument, match="adhesion of contacts cannot be joined"):
        fem.join_contacts([by_pair, by_parts])


def test_the_nearest_point_of_a_box_is_where_its_closed_form_says() -> None:
    mesh = fem.grid((2, 3, 2), (2.0, 2.0, 2.0))
    x = mesh.nodes - 1
    points = RNG.uniform(-2, 2, (200, 3))
    nearest = fem.nearest_on_surface(points, x, fem.surface(mesh.elements))
    beyond = abs(points) - 1
    outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
    exact = np.where(outside > 0, outside, beyond.max(axis=1))
    assert nearest.signed_distance == pytest.approx(exact, abs=1e-12)
    faces = fem.surface(mesh.elements)[nearest.face]
    foot = np.einsum("ck,cki->ci", nearest.weights, x[faces])
    along = points - exact[:, None] * nearest.normal
    assert foot == pytest.approx(along, abs=1e-12)


def test_weights_of_a_point_in_an_element_give_the_point_back() -> None:
    for corners in (RNG.normal(size=(5, 4, 3)), RNG.normal(size=(5, 3, 3))):
        weights = RNG.dirichlet(np.ones(corners.shape[1]), 5)
        points = np.einsum("ck,cki->ci", weights, corners)
        assert fem.weights_at(points, corners) == pytest.approx(weights, abs=1e-9)


def test_the_surface_of_a_ball_is_closed_and_looks_outwards() -> None:
    mesh = fem.ball(4, 0.3)
    faces = fem.surface(mesh.elements)
    a, b, c = mesh.nodes[faces].transpose(1, 0, 2)
    area = np.cross(b - a, c - a) / 2
    assert area.sum(axis=0) == pytest.approx([0, 0, 0], abs=1e-12)
    volume = np.einsum("fi,fi->f", a, area).sum() / 3
    corners = mesh.nodes[mesh.elements]
    assert volume == pytest.approx(np.linalg.det(corners[:, 1:] - corners[:, :1]).sum() / 6)
    assert np.linalg.norm(mesh.nodes[np.unique(faces)], axis=1) == pytest.approx(0.3)


def test_a_mesh_is_read_from_a_file_without_the_nodes_that_it_does_not_use(tmp_path: Path) -> None:
    points = np.concatenate(([[9.0, 9, 9]], GRID.nodes))
    cells = [("tetra", GRID.elements + 1), ("triangle", fem.surface(GRID.elements) + 1)]
    meshio.Mesh(points, cells).write(tmp_path / "body.vtk")
    nodes, elements = fem.read_mesh(tmp_path / "body.vtk")
    assert nodes == pytest.approx(GRID.nodes)
    assert elements.tolist() == GRID.elements.tolist()
    assert len(fem.read_mesh(meshio.Mesh(points, cells), "triangle").nodes) == len(GRID.nodes)
    with pytest.raises(sap.InvalidArgument, match="has no elements 'line'; it has tetra, triangle"):
        fem.read_mesh(tmp_path / "body.vtk", "line")
    with pytest.raises(sap.InvalidArgument, match=r"nowhere.msh"):
        fem.read_mesh(tmp_path / "nowhere.msh")


@pytest.mark.parametrize(
    ("young", "poisson", "field"),
    [(-1.0, 0.3, "young"), (np.nan, 0.3, "young"), (1.0, 0.5, "poisson"), (1.0, -1.0, "poisson")],
)
def test_materials_that_no_body_has_are_refused(young: float, poisson: float, field: str) -> None:
    solid = fem.Solid(*GRID, DENSITY, young, poisson)
    with pytest.raises(sap.InvalidArgument, match=f"{field} is .* must be") as caught:
        fem.step(solid, GRID.nodes, np.zeros(GRID.nodes.shape), 0.01)
    assert caught.value.field == field


def test_normals_that_are_no_unit_vectors_are_refused_by_number() -> None:
    points = fem.Points(np.array([[0], [1]]), np.ones((2, 1)))
    for wrong in ([0, 0, 2], [0, 0, 0], [0, 0, np.nan]):
        with pytest.raises(sap.InvalidArgument, match="has length") as caught:
            fem.contacts(points, [[0, 0, 1], wrong], 0.0)
        assert caught.value.field == "normal[1]"


def test_elements_without_extent_or_orientation_are_refused_by_number() -> None:
    loose = fem.Solid(np.append(GRID.nodes, [[9, 9, 9]], axis=0), GRID.elements, 1.0, 1.0, 0.3)
    with pytest.raises(sap.InvalidArgument, match=r"masses\[12\] is 0.0; > 0 is needed"):
        fem.step(loose, loose.rest, np.zeros(loose.rest.shape), 0.01)
    turned = GRID.elements.copy()
    turned[5] = turned[5, [1, 0, 2, 3]]
    with pytest.raises(sap.InvalidArgument, match=r"tetrahedra\[5\] has no positive volume"):
        fem.Solid(GRID.nodes, turned, DENSITY, YOUNG, POISSON)
    flat = np.array([[0, 1, 1]])
    with pytest.raises(sap.InvalidArgument, match=r"triangles\[0\] has no area"):
        fem.Membrane(SHEET.nodes, flat, 1e-3, 300.0, 1e6, 0.3)
    mirrored = SHEET.elements.copy()
    mirrored[3] = mirrored[3, [1, 0, 2]]
    with pytest.raises(sap.InvalidArgument, match="are not oriented alike"):
        fem.Membrane(SHEET.nodes, mirrored, 1e-3, 300.0, 1e6, 0.3)
