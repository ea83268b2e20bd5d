"""The solver in this process: the bits of a server, threads, forks, libraries loaded before it."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import sap_islands as sap
import sap_islands.aio
from sap_islands import problem_files
from sap_islands._gradients.input_arrays import get
from sap_islands.derivatives import DifferentiateRequest

from conftest import ROOT
from conftest import problem_files as golden_files
from support.program import run_program
from support.scenes import balls_on_floor, linked_balls, pushed_steps, same_bits
from support.schema import solution_pb2


@pytest.fixture(scope="module")
def inside() -> Iterator[sap.Client]:
    with sap.connect("embedded:") as client:
        yield client


@pytest.fixture(scope="module")
def server() -> Iterator[sap.Client]:
    with sap.connect("embedded:process") as client:
        yield client


def test_every_problem_has_the_bits_of_the_server(inside: sap.Client, server: sap.Client) -> None:
    files = golden_files() + sorted((ROOT / "tests/data/constraints").iterdir())
    for path in files:
        problem = problem_files.load_problem(path)
        assert same_bits(inside.solve(problem), server.solve(problem)), path


def test_numbers_and_rows_that_stand_for_all_are_repeated(
    inside: sap.Client, server: sap.Client
) -> None:
    for seed in range(3):
        problem = linked_balls(seed)
        problem.regularization = sap.Regularization(beta=0.5, row_beta=0.2)
        assert same_bits(inside.solve(problem), server.solve(problem))


def test_an_island_that_a_batch_shares_has_the_bits_and_the_time_of_one_solve() -> None:
    problem = problem_files.load_problem(ROOT / "tests/data/nasty_chain_100.json.gz")
    other = problem_files.load_problem(ROOT / "tests/data/nasty_chain_100.json.gz")
    other.time_step *= 1.001
    with sap.connect("embedded:", threads=1) as client:
        solutions = client.solve_batch([problem, other, problem])
        assert not any(isinstance(solution, sap.SapError) for solution in solutions)
        first, changed, copied = cast(list[sap.Solution], solutions)
        assert same_bits(first, client.solve(problem))
        assert same_bits(copied, first)
        assert same_bits(changed, client.solve(other))
        assert np.array_equal(copied.islands.solve_time_s, first.islands.solve_time_s)
        assert not np.array_equal(changed.islands.solve_time_s, first.islands.solve_time_s)


def test_structs_are_used_again_for_other_problems(inside: sap.Client, server: sap.Client) -> None:
    problems = [linked_balls(0), balls_on_floor([0.1]), sap.Problem(0.01), linked_balls(0, 5)]
    for problem in problems * 2:
        assert same_bits(inside.solve(problem), server.solve(problem))


def test_derivatives_have_the_bits_of_the_server(inside: sap.Client, server: sap.Client) -> None:
    problem = linked_balls(1)
    direction = sap.Problem(1.0, bodies=sap.RigidBodies(mass=0.1))
    request = DifferentiateRequest(
        problem,
        [sap.Cotangent(velocity=np.ones(problem.num_velocities), cost=0.5)],
        tangents=[direction],
        wanted=["bodies", "body_contacts", "rows", "time_step", "regularization.sigma"],
    )
    a, b = (client.differentiate_batch([request])[0] for client in (inside, server))
    assert isinstance(a, sap.Derivatives)
    assert isinstance(b, sap.Derivatives)
    assert same_bits(a.solution, b.solution)
    for path in ("bodies.mass", "bodies.inertia", "body_contacts.friction", "rows.coefficient"):
        mine, its = get(a.gradients[0], path), get(b.gradients[0], path)
        assert mine.shape == its.shape
        assert mine.tobytes() == its.tobytes(), path
    assert a.gradients[0].time_step == b.gradients[0].time_step
    assert a.gradients[0].regularization == b.gradients[0].regularization
    assert a.gradients[0].trees.dynamics_matrix.size == 0
    assert a.tangents[0].velocity.tobytes() == b.tangents[0].velocity.tobytes()
    assert a.tangents[0].cost == b.tangents[0].cost
    assert a.kink_margin.tobytes() == b.kink_margin.tobytes()
    assert a.adjoint_status.tolist() == b.adjoint_status.tolist()


def test_solutions_are_written_as_the_server_writes_them(
    inside: sap.Client, server: sap.Client
) -> None:
    messages = []
    for client in (inside, server):
        solution = client.solve(linked_balls(2))
        message = solution_pb2.ContactSolution.FromString(solution.to_bytes())
        message.ClearField("timings")
        message.islands.ClearField("solve_time_s")
        messages.append(message)
    assert messages[0] == messages[1]


def test_arrays_outlive_the_solution_and_the_client() -> None:
    with sap.connect("embedded:") as client:
        expected = client.solve(balls_on_floor([0.3])).velocity.copy()
        velocity = client.solve(balls_on_floor([0.3])).velocity
        for push in range(50):
            client.solve(balls_on_floor([float(push)]))
    del client
    gc.collect()
    assert velocity.tobytes() == expected.tobytes()
    assert not velocity.flags.writeable


def test_solutions_can_be_pickled(inside: sap.Client) -> None:
    solution = inside.solve(balls_on_floor([0.3]))
    assert same_bits(pickle.loads(pickle.dumps(solution)), solution)


def test_a_mask_leaves_fields_out(inside: sap.Client) -> None:
    solution = inside.solve(balls_on_floor([0.3]), sap.Options(response_mask=("velocity",)))
    assert solution.velocity.size == 6
    assert solution.impulse.shape == (0, 3)
    assert len(solution.islands) == 0
    with pytest.raises(sap.InvalidArgument, match="'speed'") as caught:
        inside.solve(balls_on_floor([0.3]), sap.Options(response_mask=("velocity", "speed")))
    assert caught.value.field == "options.response_mask.paths[1]"


def test_threads_share_a_client(inside: sap.Client) -> None:
    problems = [linked_balls(seed) for seed in range(4)]
    expected = [inside.solve(problem) for problem in problems]
    failures: list[int] = []

    def run(number: int) -> None:
        for _ in range(20):
            if not same_bits(inside.solve(problems[number]), expected[number]):
                failures.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_number_of_threads_is_an_argument() -> None:
    with sap.connect("embedded:", threads=3) as client:
        assert client.info().solver_threads == 3
    with pytest.raises(sap.InvalidArgument, match="threads is 0"):
        sap.connect("embedded:", threads=0)
    with pytest.raises(sap.InvalidArgument, match="threads needs the address"):
        sap.connect("unix:/run/sap.sock", threads=2)


def test_limits_are_those_of_a_server_that_was_given_none(
    inside: sap.Client, server: sap.Client
) -> None:
    limits, of_server = inside.info().limits, server.info().limits
    assert limits.keys() == of_server.keys()
    for name in ("max_trees", "max_tree_dofs", "max_contacts", "max_rows", "max_row_entries"):
        assert limits[name] == of_server[name]
    assert limits["max_row_pairs"] == of_server["max_row_pairs"]


def test_a_forked_process_goes_on() -> None:
    program = """
import os
import sap_islands as sap
from support.scenes import pushed_steps, same_bits
first, second = pushed_steps(2)
client = sap.connect("embedded:", threads=2)
with client.session() as other:
    other.step(first)
    expected = other.step(second)
session = client.session()
session.step(first)
if (child := os.fork()) == 0:
    assert same_bits(session.step(second), expected)
    assert client.solve_batch([first] * 8)[7].solved
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert same_bits(session.step(second), expected)
print("fine")
"""
    result = run_program(program)
    assert result.stdout == "fine\n", result.stderr


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SAP_LIBRARY", str(tmp_path / "nowhere"))
    with pytest.raises(sap.Unavailable, match="nowhere"):
        sap.connect("embedded:")


def test_options_are_refused_where_nothing_is_solved(inside: sap.Client) -> None:
    refused = sap.Options(relative_tolerance=1.5)
    with pytest.raises(sap.InvalidArgument, match="relative_tolerance is"):
        inside.session(refused)
    with pytest.raises(sap.InvalidArgument, match="relative_tolerance is"):
        inside.solve_batch([], refused)
    assert inside.solve_batch([]) == []
    assert inside.differentiate_batch([]) == []


def test_a_closed_client_is_refused() -> None:
    client = sap.connect("embedded:")
    client.close()
    with pytest.raises(sap.Unavailable, match="closed"):
        client.solve(balls_on_floor([0.0]))


def test_a_cancelled_step_of_asyncio_leaves_the_session_usable(inside: sap.Client) -> None:
    first, second = pushed_steps(2)
    with inside.session() as session:
        session.step(first)
        expected = session.step(second)

    async def run() -> sap.Solution:
        async with sap_islands.aio.connect("embedded:") as client, client.session() as twin:
            await twin.step(first)
            task = asyncio.ensure_future(twin.step(balls_on_floor([0.5] * 50_000)))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await twin.step(second)

    assert same_bits(asyncio.run(run()), expected)
