"""Steps of models with flexes: rows and contacts over many trees, and the metric of `discrete`."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.referee import certify

from support.linearization_agreement import largest_deviation
from support.mujoco_agreement import follow, solve_tightly
from support.mujoco_flexes import NAMES, OF_DISCRETE, flex_model, in_motion
from support.recorded_runs import record

STEPS = 40
CONES = ("pyramidal", "elliptic")


def model_or_skip(name: str, options: str) -> Any:
    """A model, unless this version of MuJoCo refuses to step it."""
    try:
        model = flex_model(name, options)
        mujoco.mj_step(model, mujoco.MjData(model))
    except (ValueError, mujoco.FatalError) as refusal:
        pytest.skip(f"MuJoCo {mujoco.__version__}: {refusal}")
    return model


@pytest.fixture(params=["Euler", "discrete"])
def integrator(request: pytest.FixtureRequest) -> str:
    """An integrator that elastic flexes have."""
    name = str(request.param)
    if not hasattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}"):
        pytest.skip(f"this MuJoCo has no integrator {name}")
    return name


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("name", NAMES)
def test_steps_of_mujocos_law_agree_with_mujoco(client: sap.Client, name: str, cone: str) -> None:
    model = model_or_skip(name, f'cone="{cone}"')
    solve_tightly(model)
    difference = follow(model, in_motion(model), client, STEPS)
    assert difference.velocity < 1e-8
    assert difference.force < 1e-6


@pytest.mark.parametrize("name", ["cable on a sphere", "cloth on a sphere", "cloth held by an arm"])
def test_steps_of_an_implicit_integrator_agree_with_mujoco(client: sap.Client, name: str) -> None:
    model = flex_model(name, 'integrator="implicitfast"')
    difference = follow(model, in_motion(model), client, STEPS)
    assert difference.velocity < 1e-8
    assert difference.force < 1e-6


@pytest.mark.skipif(
    not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"), reason="needs MuJoCo 3.13 or later"
)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("name", [*NAMES, *OF_DISCRETE])
def test_steps_with_the_metric_of_discrete_agree_with_mujoco(
    client: sap.Client, name: str, cone: str
) -> None:
    if name == "passive contacts" and mujoco.mj_version() < 3_014_000:
        pytest.skip("MuJoCo 3.13 lists these contacts in another form")
    model = model_or_skip(name, f'integrator="discrete" cone="{cone}"')
    data, ours = in_motion(model), mujoco.MjData(model)
    for _ in range(STEPS):
        mujoco.mj_copyData(ours, model, data)
        mujoco.mj_step(model, data)
        adapter.step(model, ours, client, law="mujoco", on_unsolved="raise")
        for array, bound in (("qvel", 1e-8), ("qacc", 1e-6), ("qfrc_constraint", 1e-6)):
            expected = getattr(data, array)
            if expected.any():
                assert largest_deviation(getattr(ours, array), expected) < bound, array


def test_scenes_have_what_their_names_say(client: sap.Client) -> None:
    parts = {}
    for name in NAMES:
        model = model_or_skip(name, 'cone="elliptic"')
        data = in_motion(model)
        parts[name] = 0
        for _ in range(STEPS):
            problem, _ = adapter.step(model, data, client, law="mujoco")
            parts[name] = max(parts[name], *problem.problem.contacts.parts, 0)
    # A face has three vertices, an element of a solid four, a cell of quadratic order 27 nodes.
    assert parts["cloth on a sphere"] == 3
    assert parts["rigid block"] == 1
    assert parts["ball on a block"] >= 4
    assert parts["block on a block"] >= 4
    assert parts["quadratic block"] > 8
    assert min(parts.values()) > 0


@pytest.mark.parametrize("law", ["sap", "coulomb", "mujoco"])
def test_one_call_and_rollouts_have_the_bits_of_step(
    client: sap.Client, law: adapter.Law, integrator: str
) -> None:
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    for name in ("cable on a cloth", "ball on a block", "elastic cloth on a sphere"):
        model = model_or_skip(name, f'integrator="{integrator}"')
        stepped, advanced = in_motion(model), in_motion(model)
        batched, threaded = in_motion(model), in_motion(model)
        state = np.empty(mujoco.mj_stateSize(model, kind))
        mujoco.mj_getState(model, stepped, state, kind)
        found = adapter.rollout(model, state, None, nstep=6, law=law, threads=2)[0]
        for _ in range(6):
            adapter.step(model, stepped, client, law=law)
            adapter.advance(model, advanced, law=law)
            adapter.step_batch(model, [batched], client, law=law)
            adapter.advance_batch(model, [threaded], law=law)
            for other in (advanced, batched, threaded):
                for array in ("qpos", "qvel", "qacc", "qfrc_constraint", "efc_force"):
                    assert np.array_equal(getattr(other, array), getattr(stepped, array)), array
        assert np.array_equal(found[0, -1, 1 : 1 + model.nq], stepped.qpos)


def test_sessions_and_servers_have_the_bits_of_this_process(client: sap.Client) -> None:
    model = flex_model("ball on a block", 'cone="elliptic"')
    here, remote = in_motion(model), in_motion(model)
    with sap.connect("embedded:process") as server, server.session() as session:
        for _ in range(10):
            adapter.step(model, here, client)
            adapter.step(model, remote, session)
            assert np.array_equal(here.qvel, remote.qvel)


def test_the_law_of_sap_rests_as_deep_as_mujoco_and_holds_what_is_held(
    client: sap.Client, integrator: str
) -> None:
    tilted = f'integrator="{integrator}" gravity="2 0 -9.6"'
    model = flex_model("trilinear block", tilted)
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    while data.time < 1.5:
        adapter.advance(model, data)
        mujoco.mj_step(model, other)
    assert data.flexvert_xpos[:, 2].min() == pytest.approx(
        other.flexvert_xpos[:, 2].min(), abs=1e-4
    )
    held = model.flex_nodebodyid[data.xpos[model.flex_nodebodyid, 2] < 0.05]
    along_x = model.body_dofadr[held]
    assert len(held) == 4
    assert abs(data.qvel[along_x]).max() < 1e-5
    assert abs(other.qvel[along_x]).max() > 10 * abs(data.qvel[along_x]).max()


def test_a_certified_run_is_exact_and_a_changed_velocity_is_found() -> None:
    model = flex_model("ball on a block")
    run = record(model, 60)
    verdict = certify(model, run)
    assert verdict.exact == 60
    run["next_qvel"][50] *= 1.001
    verdict = certify(model, run)
    assert verdict.exact == 59
    assert verdict.worst[0].row == 50


def test_contacts_of_a_run_with_flexes_are_refused_by_name() -> None:
    model = flex_model("ball on a block")
    run = record(model, 10, with_contacts=True)
    with pytest.raises(sap.InvalidArgument, match="contact_state must be left out"):
        certify(model, run)


def test_derivatives_are_refused_by_name(client: sap.Client) -> None:
    model = flex_model("block on a plane")
    with pytest.raises(sap.InvalidArgument, match=r"has flexes \(flex 'block'\)"):
        adapter.linearize(model, mujoco.MjData(model), client)


@pytest.mark.skipif(
    not hasattr(mujoco.mjtEnableBit, "mjENBL_IPC"), reason="needs MuJoCo 3.14 or later"
)
def test_contacts_as_barriers_are_refused_by_name(client: sap.Client) -> None:
    model = flex_model("block on a plane", 'integrator="discrete" solver="CG"')
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_IPC)
    data = mujoco.MjData(model)
    with pytest.raises(sap.InvalidArgument, match="the model enables ipc"):
        adapter.step(model, data, client)
    with pytest.raises(sap.InvalidArgument, match="the model enables ipc"):
        adapter.advance(model, data)


def test_a_metric_of_which_mujoco_lists_a_part_is_refused_by_name(client: sap.Client) -> None:
    name = "cable that twists" if mujoco.mj_version() >= 4_000_000 else "elastic cloth on an arm"
    if not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):
        pytest.skip("needs MuJoCo 3.13 or later")
    model = model_or_skip(name, 'integrator="discrete" solver="CG"')
    data = in_motion(model)
    before = data.qpos.copy()
    with pytest.raises(sap.InvalidArgument, match="does not list all terms"):
        adapter.advance(model, data)
    with pytest.raises(sap.InvalidArgument, match="does not list all terms"):
        adapter.step(model, data, client)
    assert np.array_equal(data.qpos, before)
