"""Bodies that joints of Newton guide along a surface slide over it, with friction of mu N."""

from __future__ import annotations

from typing import Any

import pytest

from support.newton_scene import UPRIGHT, Scene, add_ground, newton, wp

KE = 2500.0  # of all shapes [N/m]
MU = 0.5


def guided_box(joint: str, overlap: float) -> Scene:
    """A box of 2 kg on a joint of one dof, its four corners on the ground; 10 N or N m push it."""

    def build(builder: Any) -> None:
        add_ground(builder, MU)
        link = builder.add_link(mass=0.0)
        shape = newton.ModelBuilder.ShapeConfig(density=2 / (0.2 * 0.2 * 0.1), mu=MU, ke=KE)
        at = wp.transform((0, 0, 0.05), UPRIGHT)
        builder.add_shape_box(link, xform=at, hx=0.1, hy=0.1, hz=0.05, cfg=shape)
        rail = wp.transform((0, 0, -overlap), UPRIGHT)
        if joint == "slide":
            added = builder.add_joint_prismatic(-1, link, parent_xform=rail, axis=(1, 0, 0))
        else:
            added = builder.add_joint_revolute(-1, link, parent_xform=rail, axis=(0, 0, 1))
        builder.add_articulation([added])

    scene = Scene(build, time_step=0.002)
    scene.control.joint_f.assign([10.0])
    return scene


def inertia_and_arm(joint: str) -> tuple[float, float]:
    """Inertia of the joint, and arm of friction at the corners: none for a slide."""
    return (2.0, 1.0) if joint == "slide" else (2 * 0.2**2 / 6, 0.1 * 2**0.5)


@pytest.mark.parametrize("overlap", [-3e-3, 0.0, 1e-5, 1e-4])
@pytest.mark.parametrize("joint", ["slide", "turn"])
def test_it_slides_against_the_friction_of_its_overlap(joint: str, overlap: float) -> None:
    inertia, arm = inertia_and_arm(joint)
    scene = guided_box(joint, overlap).run(0.2)
    friction = MU * 4 * KE * max(0.0, overlap)
    expected = 0.2 * (10 - arm * friction) / inertia
    assert scene.state.joint_qd.numpy()[0] == pytest.approx(expected, rel=2e-3)


def test_it_sticks_below_its_friction() -> None:
    scene = guided_box("slide", 3e-3).run(0.2)  # 15 N of friction
    assert abs(scene.state.joint_qd.numpy()[0]) < 1e-4
