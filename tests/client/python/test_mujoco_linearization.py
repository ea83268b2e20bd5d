"""Derivatives of steps of MuJoCo models, against finite differences of whole steps."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.mujoco import displacements

from support.linearization_agreement import (
    BOX,
    SCENES,
    differences_of_mujoco,
    differences_of_steps,
    largest_deviation,
    load,
    load_example,
)
from support.mujoco_agreement import KINDS, load_kind

# The impedance of a constraint changes over its `width`, 1 mm by default, and both sides take its
# differences over 1e-6: (1e-6 / 1e-3)² of the largest derivative is lost, in each of them.
TRUNCATION = 1e-5

ACTIVATED = """
<worldbody><geom type="plane" size="5 5 .1"/>
  <body pos="0 0 .3"><joint name="turn" axis="0 1 0" damping=".3"/>
    <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint name="bend" axis="0 1 0" damping=".1"/>
      <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/></body></body>
</worldbody>
<actuator><general joint="turn" dyntype="filterexact" dynprm=".05" gainprm="5"/>
  <intvelocity joint="bend" kp="20" actrange="-2 2"/>
  <motor joint="bend" ctrlrange="-1 1" ctrllimited="true"/></actuator>"""

SLIDER = """
<worldbody><body><joint type="slide" name="j" axis="1 0 0" damping="20"/>
  <geom size=".1" mass="1"/></body></worldbody>
<actuator><motor joint="j" gear="2"/></actuator>"""

INTEGRATORS = [
    name
    for name in ("EULER", "IMPLICITFAST", "DISCRETE")
    if hasattr(mujoco.mjtIntegrator, f"mjINT_{name}")
]

SPHERE = """
<worldbody><geom type="plane" size="5 5 .1"/>
  <body pos="0 0 .1"><freejoint/><geom size=".1"/></body></worldbody>"""


@pytest.mark.parametrize("integrator", ["EULER", "IMPLICITFAST"])
@pytest.mark.parametrize("cone", ["ELLIPTIC", "PYRAMIDAL"])
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_agree_with_mujocos_differences(
    client: sap.Client, kind: str, cone: str, integrator: str
) -> None:
    model, data = load_kind(kind, cone, integrator)
    for _ in range(40):
        mujoco.mj_step(model, data)
    A, B = differences_of_mujoco(model, data)
    found = adapter.linearize(model, data, client, law="mujoco", on_unsolved="raise")
    assert largest_deviation(found.A, A) <= TRUNCATION
    # Round-off leaves some 1e-14 m/s of noise in MuJoCo's answers, over a displacement of 1e-6.
    assert abs(found.B - B).max(initial=0.0) <= 5e-8


@pytest.mark.parametrize("integrator", ["EULER", "IMPLICIT", "IMPLICITFAST"])
def test_activations_and_controls_are_states_and_inputs(
    client: sap.Client, integrator: str
) -> None:
    model, data = load(ACTIVATED)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    data.ctrl[:] = 0.3, -0.5, 0.2
    for _ in range(150):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    A, B = differences_of_mujoco(model, data)
    found = adapter.linearize(model, data, client, law="mujoco", on_unsolved="raise")
    assert len(A) == 2 * model.nv + 2
    assert largest_deviation(found.A, A) <= TRUNCATION
    assert abs(found.B - B).max(initial=0.0) <= 1e-8


@pytest.mark.parametrize("scene", SCENES)
def test_scenes_agree_with_mujocos_differences(client: sap.Client, scene: str) -> None:
    model, data = SCENES[scene]()
    assert data.nefc > 0
    A, B = differences_of_mujoco(model, data)
    found = adapter.linearize(model, data, client, law="mujoco", on_unsolved="raise")
    assert largest_deviation(found.A, A) <= TRUNCATION
    assert largest_deviation(found.B, B) <= TRUNCATION


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_a_damped_slider_has_derivatives_in_closed_form(
    client: sap.Client, law: adapter.Law, integrator: str
) -> None:
    model, data = load(SLIDER)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    model.opt.timestep = dt = 0.005
    data.qvel[0] = 0.3
    found = adapter.linearize(model, data, client, law=law)
    decay = 1.0 / (1.0 + dt * 20.0)  # m v' = m v + dt (2 u - 20 v')
    assert pytest.approx(np.array([[1.0, dt * decay], [0.0, decay]]), abs=1e-9) == found.A
    assert found.B[:, 0] == pytest.approx([2.0 * dt * dt * decay, 2.0 * dt * decay], abs=1e-9)


@pytest.mark.parametrize("integrator", ["EULER", INTEGRATORS[-1]])
@pytest.mark.parametrize("scene", ["arm", "humanoid", "sliding box"])
def test_derivatives_are_those_of_the_own_step(
    client: sap.Client, scene: str, integrator: str
) -> None:
    if scene == "sliding box":
        model, data = load(BOX)
        adapter.find_contacts_within(model, 0.005)
        data.qvel[0] = 0.3
    else:
        model, data = load_example(f"{scene}.xml")
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    for _ in range(125 if scene == "humanoid" else 10):
        adapter.step(model, data, client)
    assert data.ncon > 0
    A, B = differences_of_steps(model, data, client, 1e-6)
    found = adapter.linearize(model, data, client, on_unsolved="raise")
    assert largest_deviation(found.A, A) <= TRUNCATION
    assert largest_deviation(found.B, B) <= TRUNCATION


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_the_state_stays_and_the_next_one_is_that_of_a_step(
    client: sap.Client, law: adapter.Law, integrator: str
) -> None:
    model, data = load(ACTIVATED)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    data.ctrl[:] = 0.3, -0.5, 0.2
    for _ in range(150):
        mujoco.mj_step(model, data)
    kinds = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    before, after = (np.zeros(mujoco.mj_stateSize(model, kinds)) for _ in range(2))
    mujoco.mj_getState(model, data, before, kinds)
    found = adapter.linearize(model, data, client, law=law)
    mujoco.mj_getState(model, data, after, kinds)
    assert after.tolist() == before.tolist()
    # The solve of a step under law="sap" has a tolerance of 1e-6 by default.
    adapter.step(model, data, client, law=law, options=sap.Options(relative_tolerance=1e-10))
    assert found.qvel == pytest.approx(data.qvel, abs=1e-14)
    assert found.qpos == pytest.approx(data.qpos, abs=1e-14)
    assert found.act == pytest.approx(data.act, abs=1e-14)


def test_forward_differences_are_less_accurate_but_agree(client: sap.Client) -> None:
    model, data = load_kind("condim 3", "ELLIPTIC", "EULER")
    for _ in range(40):
        mujoco.mj_step(model, data)
    central = adapter.linearize(model, data, client)
    forward = adapter.linearize(model, data, client, centered=False)
    assert largest_deviation(forward.A, central.A) > 1e-12
    assert largest_deviation(forward.A, central.A) <= 1e-2


# A sphere that touches by less than the displacement: raised, it loses the contact, and the
# difference is that of the other side. It is compared with displacements that keep the contact.
def test_contact_that_opens_within_the_displacement_is_held(client: sap.Client) -> None:
    model, data = load(SPHERE)
    data.qpos[2] -= 1e-7
    data.qvel[:3] = 0.1, 0.0, -0.2
    held = adapter.linearize(model, data, client)
    small = adapter.linearize(model, data, client, eps=1e-8)
    assert small.A[8, 2] < -1  # it pushes back: m/s per m
    # A one-sided difference has an error of first order in 1e-6 / 1e-3; see above.
    assert largest_deviation(held.A, small.A) <= 1e-2


# MuJoCo chooses the tangents of a contact by whether |n_y| < 1/2; on this slope either may result.
def test_tangents_that_turn_within_the_displacement_are_held(client: sap.Client) -> None:
    slope = SPHERE.replace('size="5 5 .1"', 'size="5 5 .1" euler="{} 0 0"').replace(
        "0 0 .1", "0 0 0"
    )
    found = []
    for angle in (30.0, 30.1):
        model, data = load(slope.format(angle))
        turn = np.radians(angle)
        data.qpos[1:3] = (0.1 - 1e-4) * np.array([-np.sin(turn), np.cos(turn)])
        data.qvel[:3] = 0.1, 0.2, -0.2
        found.append(adapter.linearize(model, data, client).A)
    # The slopes differ by 0.0017 rad, and the derivatives not by much more.
    assert largest_deviation(found[0], found[1]) <= 1e-2


def test_limit_that_ends_within_the_displacement_is_held(client: sap.Client) -> None:
    model, data = load(
        """<worldbody><body><joint axis="0 1 0" range="-10 10" limited="true"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/></body></worldbody>"""
    )
    data.qpos[0], data.qvel[0] = np.radians(10) + 1e-7, 0.5
    held = adapter.linearize(model, data, client)
    small = adapter.linearize(model, data, client, eps=1e-8)
    assert small.A[1, 0] < -1
    # A one-sided difference has an error of first order in 1e-6 / 1e-3; see above.
    assert largest_deviation(held.A, small.A) <= 1e-2


# With no contact within reach all are held: their points stay, and distances follow the motion.
def test_contact_that_is_not_found_follows_the_motion_of_its_bodies(
    client: sap.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = load(SPHERE)
    data.qpos[2] -= 1e-4
    data.qvel[2] = -0.2
    found = adapter.linearize(model, data, client)
    monkeypatch.setattr(displacements, "_REACH", -1.0)
    held = adapter.linearize(model, data, client)
    assert held.A[:, 2] == pytest.approx(found.A[:, 2], rel=0, abs=1e-6 * abs(found.A).max())
    assert held.A[8, 2] < -1


def test_control_at_its_limit_has_the_derivative_of_the_inside(client: sap.Client) -> None:
    model, data = load(ACTIVATED)
    inside = adapter.linearize(model, data, client).B
    data.ctrl[2] = 1.0
    at_limit = adapter.linearize(model, data, client).B
    assert at_limit[:, 2] == pytest.approx(inside[:, 2], rel=1e-6, abs=1e-9)
    assert abs(inside[:, 2]).max() > 1e-3
    data.ctrl[2] = 2.0
    assert not adapter.linearize(model, data, client).B[:, 2].any()


def test_free_flight_has_the_derivatives_of_a_rotation(client: sap.Client) -> None:
    model, data = load(
        '<option gravity="0 0 0"/><worldbody><body><freejoint/><geom size=".1"/></body></worldbody>'
    )
    data.qvel[3:] = 0.0, 0.0, 2.0
    found = adapter.linearize(model, data, client)
    dt = model.opt.timestep
    c, s = np.cos(2.0 * dt), np.sin(2.0 * dt)
    # Seen from the body, which turns about z, a rotation vector of before turns back.
    assert found.A[3:6, 3:6] == pytest.approx(np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]))
    assert found.A[:3, 6:9] == pytest.approx(dt * np.eye(3))
    assert found.A[5, 11] == pytest.approx(dt)
    assert found.kink_margin.size == 0


def test_what_is_not_supported_is_refused(client: sap.Client) -> None:
    model, data = load(SPHERE)
    for eps in (0.0, -1e-6, np.nan):
        with pytest.raises(sap.InvalidArgument, match="eps is"):
            adapter.linearize(model, data, client, eps=eps)
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    with pytest.raises(sap.InvalidArgument, match="sleep"):
        adapter.linearize(model, data, client)


def test_a_step_that_is_not_solved_is_reported(client: sap.Client) -> None:
    model, data = load(SPHERE)
    data.qpos[2] -= 1e-4
    data.qvel[:3] = 0.5, 0.0, -1.0
    options = sap.Options(max_iterations=0)
    with pytest.warns(adapter.UnsolvedWarning) as caught:
        adapter.linearize(model, data, client, options=options)
    assert "were not solved" in str(caught[0].message)
    assert "no accurate derivatives" in str(caught[1].message)
    with pytest.raises(adapter.Unsolved, match="were not solved"):
        adapter.linearize(model, data, client, options=options, on_unsolved="raise")
