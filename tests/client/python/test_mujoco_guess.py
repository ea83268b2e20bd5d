"""Impulses of one step as the guess of the next, in steps of MuJoCo models."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter

from support.mujoco_agreement import load_kind


def balls_in_a_box() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Twelve balls that fall into a narrow box, and a slide joint with limits."""
    balls = "".join(
        f'<body pos="{0.03 * (i % 2)} {0.02 * (i % 3)} {0.1 + 0.09 * i}"><freejoint/>'
        '<geom size=".04" condim="6" friction=".8 .003 .003"/></body>'
        for i in range(12)
    )
    walls = "".join(
        f'<geom type="plane" size="1 1 .1" pos="{x} {y} 0" zaxis="{-x} {-y} 0"/>'
        for x, y in ((0.1, 0), (-0.1, 0), (0, 0.1), (0, -0.1))
    )
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.004" cone="elliptic"/><worldbody>
        <geom type="plane" size="1 1 .1"/>{walls}{balls}
        <body pos="1 0 .5"><joint name="s" type="slide" axis="0 0 1" range="-.1 .1"
        limited="true" frictionloss="2" damping="3"/><geom size=".05"/></body>
        </worldbody></mujoco>"""
    )
    return model, mujoco.MjData(model)


def test_steps_from_the_impulses_before_take_fewer_iterations(client: sap.Client) -> None:
    options = sap.Options(interior_point=sap.InteriorPoint.ALWAYS)
    iterations = []
    heights = []
    for guess in (None, adapter.ImpulseGuess()):
        model, data = balls_in_a_box()
        taken = 0
        for _ in range(150):
            _, solution = adapter.step(
                model, data, client, material=adapter.Material.rigid(), options=options, guess=guess
            )
            assert solution.solved
            taken += int(solution.islands.iterations.max(initial=0))
        iterations.append(taken)
        heights.append(data.qpos[2::7][:12].mean())
    assert iterations[1] < 0.9 * iterations[0]
    assert heights[0] == pytest.approx(heights[1], abs=1e-3)


@pytest.mark.parametrize("cone", ["PYRAMIDAL", "ELLIPTIC"])
@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_the_same_state_gets_the_impulses_of_its_own_answer(
    client: sap.Client, cone: str, law: adapter.Law
) -> None:
    model, data = load_kind("everything", cone, "EULER")
    for _ in range(5):
        adapter.step(model, data, client, law=law)
    built = adapter.build_problem(model, data, law=law)
    solution = client.solve(built.problem)
    guess = adapter.ImpulseGuess()
    guess.give(data, built)
    assert not built.problem.contacts.guess_impulse.size
    guess.keep(data, built, solution)
    again = adapter.build_problem(model, data, law=law)
    guess.give(data, again)
    contacts, rows = again.problem.contacts, again.problem.rows
    assert np.array_equal(contacts.guess_impulse.reshape(-1, 3), solution.impulse)
    assert np.array_equal(contacts.guess_angular_impulse.reshape(-1, 3), solution.angular_impulse)
    assert np.array_equal(rows.guess_impulse, solution.row_impulse)


def test_new_contacts_have_no_guess(client: sap.Client) -> None:
    model, data = balls_in_a_box()
    guess = adapter.ImpulseGuess()
    while data.ncon < 2:
        adapter.step(model, data, client, guess=guess)
    before = {tuple(pair) for pair in data.contact.geom.tolist()}
    while {tuple(pair) for pair in data.contact.geom.tolist()} <= before:
        built, _ = adapter.step(model, data, client, guess=guess)
    is_new = [tuple(pair) not in before for pair in data.contact.geom[built.contact].tolist()]
    given = built.problem.contacts.guess_impulse.reshape(-1, 3)
    assert any(is_new)
    assert not given[is_new].any()
    assert given[~np.array(is_new)].any()
