"""Scenes with deformable bodies: what they do, and how they are saved, drawn and shown."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import sap_islands as sap
from sap_islands.__main__ import main
from sap_islands.soft_scenes import SOFT_SCENES, load_soft_scene
from sap_islands.tools.soft_contacts import Law, find_contacts
from sap_islands.tools.soft_simulation import SoftSimulation
from sap_islands.tools.trajectory import Frame, Trajectory
from sap_islands.tools.viewer import Viewer


def simulate(
    client: sap.Client, name: str, steps: int, bodies: int | None = None
) -> tuple[SoftSimulation, Trajectory]:
    simulation = SoftSimulation(load_soft_scene(name, bodies), client)
    trajectory = simulation.new_trajectory()
    trajectory.frames += [simulation.step() for _ in range(steps)]
    assert sum(frame.unsolved for frame in trajectory.frames) == 0
    return simulation, trajectory


def pressed_on(frame: Frame, below: float) -> float:
    """Vertical force of the contacts below a height [N]."""
    return float(frame.contact_force[frame.contact_point[:, 2] < below, 2].sum())


def test_an_arm_lifts_a_soft_block_and_holds_it(client: sap.Client) -> None:
    simulation, trajectory = simulate(client, "grip", 160)
    block = simulation.bodies[0]
    assert block.x[:, 2].min() > 0.15
    assert abs(block.v).max() < 0.01
    # Friction of the fingers alone carries it, and they press it flat.
    weight = 9.81 * block.material.masses.sum()
    assert trajectory.frames[-1].contact_force[:, 2].sum() == pytest.approx(weight, rel=0.02)
    assert np.ptp(block.x[:, 1]) < 0.075


def test_cloth_over_a_pile_rests_on_it(client: sap.Client) -> None:
    simulation, trajectory = simulate(client, "cloth", 70, bodies=1)
    cloth = simulation.bodies[0]
    assert 0.1 < cloth.x[:, 2].max() < 0.12  # over the box
    assert cloth.x[:, 2].min() > 0.0
    weight = 9.81 * (cloth.material.masses.sum() + simulation.model.body_mass.sum())
    assert pressed_on(trajectory.frames[-1], 0.005) == pytest.approx(weight, rel=0.1)


def test_a_cable_over_an_edge_follows_the_end_that_is_pulled(client: sap.Client) -> None:
    simulation, _ = simulate(client, "cable", 100)
    cable = simulation.bodies[0]
    assert cable.x[0] == pytest.approx([-0.2 - 0.2 * 1.0, 0, 0.408], abs=2e-3)
    assert cable.x[-1, 2] < 0.3  # the other end hangs
    length = np.linalg.norm(np.diff(cable.x, axis=0), axis=1).sum()
    assert length == pytest.approx(0.8, rel=0.01)


def test_soft_bodies_in_a_bin_come_to_rest_on_its_floor_and_each_other(client: sap.Client) -> None:
    simulation, trajectory = simulate(client, "soft-bin", 110, bodies=6)
    frame = trajectory.frames[-1]
    x = np.concatenate([body.x for body in simulation.bodies])
    assert x[:, 2].min() > -0.005
    assert abs(x[:, :2]).max() < 0.205
    assert np.median([abs(body.v).max() for body in simulation.bodies]) < 0.1
    weight = 9.81 * sum(body.material.masses.sum() for body in simulation.bodies)
    assert pressed_on(frame, 0.003) == pytest.approx(weight, rel=0.1)


def test_nodes_near_rigid_shapes_have_the_distances_of_their_closed_forms() -> None:
    scene = load_soft_scene("cable")
    shapes = 'type="box" size=".1 .2 .3" euler="20 30 40" pos="1 0 0"'
    others = '<geom type="sphere" size=".2"/><geom type="capsule" size=".1 .3" pos="0 2 0"/>'
    body = f"<body><freejoint/><geom {shapes}/></body>"
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{body}{others}</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    cable = scene.bodies[0]
    cable.radius = 0.0
    rng = np.random.default_rng(2)
    face = np.column_stack((np.full(10, 0.105), rng.uniform(-0.2, 0.2, 10), np.zeros(10)))
    on_sphere = rng.normal(size=(10, 3))
    on_sphere *= 0.195 / np.linalg.norm(on_sphere, axis=1, keepdims=True)
    on_capsule = np.column_stack((np.full(10, 0.102), np.full(10, 2.0), rng.uniform(-0.3, 0.3, 10)))
    rotation = data.geom_xmat[2].reshape(3, 3)
    on_box = face @ rotation.T + data.geom_xpos[2]
    cable.x = np.concatenate((on_sphere, on_capsule, on_box))
    found = find_contacts(model, data, [cable], Law(1e4, 0.01, 0.5))
    sphere, capsule, box = found
    assert sphere.contacts.signed_distance == pytest.approx(-0.005)
    assert capsule.contacts.signed_distance == pytest.approx(0.002)
    assert box.contacts.signed_distance == pytest.approx(0.005)
    assert box.frame[:, 2] == pytest.approx(np.tile(rotation[:, 0], (10, 1)))
    # The box moves with its six velocities: a turn about its center moves what it touches.
    blocks = box.contacts.jacobian.reshape(10, -1)[:, 9:].reshape(10, 3, 6)
    arm = box.point - data.xpos[1]
    spin = np.array([0.3, -0.2, 0.5])
    moved = np.einsum("cij,cj->ci", box.frame, np.cross(spin, arm))
    assert blocks[:, :, 3:] @ spin == pytest.approx(-moved, abs=1e-12)


def test_shapes_without_a_distance_are_refused_by_name() -> None:
    scene = load_soft_scene("cable")
    xml = '<mujoco><worldbody><geom type="ellipsoid" size="1 1 1"/></worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    with pytest.raises(sap.InvalidArgument, match="mjGEOM_ELLIPSOID"):
        find_contacts(model, data, scene.bodies, Law(1e4, 0.01, 0.5))


def test_deformable_shapes_are_saved_and_shown(client: sap.Client, tmp_path: Path) -> None:
    simulation, trajectory = simulate(client, "soft-bin", 3, bodies=2)
    trajectory.save(tmp_path / "run.npz")
    again = Trajectory.load(tmp_path / "run.npz")
    for frame, wanted in zip(again.frames, trajectory.frames, strict=True):
        for name in Frame.__dataclass_fields__:
            assert np.array_equal(getattr(frame, name), getattr(wanted, name)), name
    viewer = Viewer(again, port=0)
    try:
        viewer.show(2)
        first = len(simulation.bodies[0].x)
        assert np.array_equal(viewer._groups[-2]._handle.vertices, again.frames[2].deformed[:first])
        assert np.array_equal(viewer._groups[-1]._handle.vertices, again.frames[2].deformed[first:])
    finally:
        viewer.close()


@pytest.mark.parametrize("suffix", ["png", "webp"])
def test_a_picture_shows_the_color_of_each_body(
    client: sap.Client, tmp_path: Path, suffix: str
) -> None:
    picture = tmp_path / f"bin.{suffix}"
    command = ["simulate", "soft-bin", "--bodies", "2", "--time", "0.02"]
    assert main([*command, "--picture", str(picture), "--server", client.address]) == 0
    from PIL import Image

    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("RGB"), float)
    for body in load_soft_scene("soft-bin", 2).bodies:
        color = np.array(body.color)
        hue = pixels / np.linalg.norm(pixels, axis=2, keepdims=True).clip(1)
        alike = hue @ (color / np.linalg.norm(color)) > 0.99
        assert alike.sum() > 1000


def test_a_scene_is_viewed_while_it_runs(
    client: sap.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["view", "cable", "--time", "0.3", "--port", "8600", "--server", client.address]
    assert main(command) == 0
    assert "Look at http://127.0.0.1:" in capsys.readouterr().out


def test_scenes_without_a_number_of_bodies_say_so(
    client: sap.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", client.address]
    assert main(["simulate", "grip", "--bodies", "3", *server]) == 2
    assert "bodies cannot be given for the scene grip" in capsys.readouterr().err
    assert main(["simulate", "nosuch", *server]) == 2
    error = capsys.readouterr().err
    assert all(name in error for name in SOFT_SCENES)
    assert main(["simulate", "cable", "--picture", "cable.xyz", *server]) == 2
    assert "--picture is 'cable.xyz'" in capsys.readouterr().err
