"""Steps of models with flexes: rows and contacts over many trees, and the metric of `discrete`."""

from __future__ import annotations

import itertools
from pathlib import Path
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


@pytest.mark.skipif(
    not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"), reason="needs MuJoCo 3.13 or later"
)
def test_one_call_follows_models_of_equal_size_whose_stiffness_has_another_pattern(
    client: sap.Client,
) -> None:
    models = [
        mujoco.MjModel.from_xml_string(
            f"""<mujoco><option timestep="1e-3" integrator="discrete"/><worldbody>
            <geom type="plane" size="3 3 .1"/>
            <flexcomp name="f" type="grid" dim="{dim}" count="{count}" pos="0 0 .12" radius=".01"
            spacing=".06 .06 .06" mass=".4"><elasticity young="5e3" poisson=".2" thickness="1e-2"
            {more}/><contact selfcollide="none"/></flexcomp></worldbody></mujoco>"""
        )
        for dim, count, more in ((3, "4 4 4", ""), (2, "8 8 1", 'elastic2d="both"'))
    ]
    assert models[0].nv == models[1].nv
    stepped, advanced = ([in_motion(model) for model in models] for _ in range(2))
    for _ in range(6):
        for model, one, other in zip(models, stepped, advanced, strict=True):
            adapter.step(model, one, client, law="mujoco")
            adapter.advance(model, other, law="mujoco")
            assert np.array_equal(one.qvel, other.qvel)


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


def test_a_problem_file_has_the_bits_of_the_problem(client: sap.Client, tmp_path: Path) -> None:
    model = flex_model("cloth held by an arm", 'cone="elliptic"')
    data = in_motion(model)
    for _ in range(60):
        adapter.advance(model, data)
    problem = adapter.build_problem(model, data).problem
    assert problem.trees.coupling_block.size > 0
    sap.save_problem(problem, tmp_path / "cloth.json")
    found = client.solve(sap.load_problem(tmp_path / "cloth.json"))
    assert np.array_equal(found.velocity, client.solve(problem).velocity)


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


def dense_twin(problem: sap.Problem) -> sap.Problem:
    """The same problem with one tree."""
    trees, contacts = problem.trees, problem.contacts
    first = np.concatenate(([0], np.cumsum(trees.dofs))).astype(int)
    size = first[-1]
    A, at = np.zeros((size, size)), 0
    for begin, end in itertools.pairwise(first):
        n = end - begin
        A[begin:end, begin:end] = trees.dynamics_matrix[at : at + n * n].reshape(n, n)
        at += n * n
    at = 0
    for a, b in zip(trees.coupled_a, trees.coupled_b, strict=True):
        rows, columns = slice(first[a], first[a + 1]), slice(first[b], first[b + 1])
        shape = trees.dofs[a], trees.dofs[b]
        A[rows, columns] = trees.coupling_block[at : at + shape[0] * shape[1]].reshape(shape)
        A[columns, rows] = A[rows, columns].T
        at += shape[0] * shape[1]
    J, at, part = np.zeros((contacts.count, 3, size)), 0, 0
    for contact, parts in enumerate(contacts.parts):
        for tree in contacts.part_tree[part : part + parts]:
            n = trees.dofs[tree]
            block = contacts.jacobian[at : at + 3 * n].reshape(3, n)
            J[contact, :, first[tree] : first[tree + 1]] = block
            at += 3 * n
        part += parts
    names = ("friction", "relaxation_time", "target_velocity", "regularization_n")
    return sap.Problem(
        time_step=problem.time_step,
        trees=sap.Trees.from_wire_arrays(
            dofs=np.array([size], np.uint32),
            dynamics_matrix=A.ravel(),
            free_motion_velocity=trees.free_motion_velocity,
        ),
        contacts=sap.Contacts.from_wire_arrays(
            tree_a=np.zeros(contacts.count, np.int32),
            tree_b=np.full(contacts.count, -1, np.int32),
            jacobian=J.ravel(),
            **{name: getattr(contacts, name) for name in names},
        ),
        rows=problem.rows,
        regularization=problem.regularization,
    )


@pytest.mark.parametrize("name", ["cloth held by an arm", "elastic cloth on an arm"])
def test_a_tree_that_is_taken_apart_has_the_answer_of_the_whole(
    client: sap.Client, name: str
) -> None:
    model, exact = flex_model(name), sap.Options(relative_tolerance=1e-12)
    data = in_motion(model)
    for _ in range(120):
        adapter.advance(model, data)
    problem = adapter.build_problem(model, data).problem
    assert model.ntree == 1
    assert problem.trees.count > 30
    assert problem.contacts.count > 3
    apart, whole = client.solve(problem, exact), client.solve(dense_twin(problem), exact)
    assert largest_deviation(apart.velocity, whole.velocity) < 1e-9
    assert largest_deviation(apart.impulse.ravel(), whole.impulse.ravel()) < 1e-7


def test_dampers_of_a_tree_that_is_taken_apart_are_implicit() -> None:
    model = flex_model("elastic cloth on an arm")
    data = in_motion(model)
    problem = adapter.build_problem(model, data).problem
    A, dt = np.zeros((model.nv, model.nv)), model.opt.timestep
    for row, unit in zip(A, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    A += dt * np.diag(model.dof_damping)
    v_star = data.qvel + np.linalg.solve(A, dt * data.qfrc_smooth)
    assert model.dof_damping.any()
    assert largest_deviation(problem.trees.free_motion_velocity, v_star) < 1e-12


@pytest.mark.parametrize("name", ["ball on a block", "cloth held by an arm"])
def test_a_certified_run_is_exact_and_a_changed_velocity_is_found(
    client: sap.Client, name: str
) -> None:
    model = flex_model(name)
    run = record(model, 60)
    assert certify(model, run).exact == 60
    run["next_qvel"][50] *= 1.01
    for verdict in (certify(model, run), certify(model, run, client=client)):
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
