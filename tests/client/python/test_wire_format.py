"""The hand-written encoding and decoding agree with protobuf's."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
from sap_islands._arrays import wire_format
from sap_islands._remote import messages
from sap_islands.options import from_message, to_message
from sap_islands.v1 import gradient_pb2, problem_pb2, solution_pb2, solver_service_pb2

from conftest import problem_files
from support.random_messages import random_message
from support.scenes import balls_on_floor


@pytest.mark.parametrize("path", problem_files()[:12], ids=lambda path: path.name.split(".")[0])
def test_problems_are_what_protobuf_reads_and_writes(path: object) -> None:
    problem = sap.load_problem(str(path))
    message = problem_pb2.ContactProblem.FromString(problem.to_bytes())
    assert message.time_step == problem.time_step
    assert np.array_equal(message.contacts.jacobian, problem.contacts.jacobian)
    assert np.array_equal(message.contacts.tree_b, problem.contacts.tree_b)
    assert np.array_equal(message.trees.dofs, problem.trees.dofs)
    assert np.array_equal(message.bodies.inertia, problem.bodies.inertia.ravel())
    assert message.regularization.HasField("beta") == (problem.regularization.beta is not None)
    assert sap.Problem.from_bytes(message.SerializeToString()).to_bytes() == problem.to_bytes()


GROUPS: dict[str, type[Any]] = {
    "trees": sap.Trees,
    "bodies": sap.RigidBodies,
    "contacts": sap.Contacts,
    "body_contacts": sap.BodyContacts,
    "rows": sap.ConstraintRows,
    "hunt_crossley": sap.HuntCrossley,
}


def problem_of(message: Any) -> sap.Problem:
    """The problem with the fields of a message, by the public constructors alone."""

    def group_of(part: Any, name: str) -> Any:
        values = {
            field.name: group_of(value, field.name) if field.message_type else list(value)
            for field, value in part.ListFields()
        }
        return GROUPS[name](**values)

    problem = sap.Problem(message.time_step)
    for field, value in message.ListFields():
        if field.name in GROUPS:
            setattr(problem, field.name, group_of(value, field.name))
    given = {field.name: value for field, value in message.regularization.ListFields()}
    problem.regularization = sap.Regularization(**given)
    return problem


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("omitted", [0.0, 0.3, 0.8])
def test_random_problems_with_any_fields_are_the_bytes_of_protobuf(
    seed: int, omitted: float
) -> None:
    rng = np.random.default_rng(seed)
    message = random_message(problem_pb2.ContactProblem.DESCRIPTOR, rng, omitted)
    message.time_step = 0.25  # never absent in a problem
    serialized = message.SerializeToString()
    assert problem_of(message).to_bytes() == serialized
    assert sap.Problem.from_bytes(serialized).to_bytes() == serialized


def test_every_group_has_the_arrays_of_its_message() -> None:
    for name, kind in GROUPS.items():
        descriptor = getattr(problem_pb2, kind.__name__).DESCRIPTOR
        assert [field.name for field in dataclasses.fields(kind)] == [
            field.name for field in descriptor.fields
        ]
        assert name == kind.FIELD


@pytest.mark.parametrize("seed", range(5))
def test_random_solutions_are_what_protobuf_reads(seed: int) -> None:
    rng = np.random.default_rng(seed)
    message = random_message(solution_pb2.ContactSolution.DESCRIPTOR, rng, omitted=0.0)
    solution = sap.Solution(message.SerializeToString())
    for field, value in message.ListFields():
        read = getattr(solution, field.name)
        if field.message_type is not None:
            for part, numbers in value.ListFields():
                assert np.array_equal(getattr(read, part.name), numbers)
        else:
            assert np.array_equal(np.ravel(read), np.ravel(value))
    assert solution.angular_impulse.shape == (4, 3)


def test_solution_of_a_server_without_rows_is_read() -> None:
    reports = solution_pb2.IslandReports(
        status=["ISLAND_STATUS_CONVERGED"],
        iterations=[4],
        factorizations=[3],
        dofs=[6],
        momentum_residual=[1e-9],
        optimality_gap_bound=[1e-12],
        contacts=[1],
        solve_time_s=[1e-4],
    )
    message = solution_pb2.ContactSolution(velocity=[1.0], impulse=[0, 0, 1], islands=reports)
    solution = sap.Solution(message.SerializeToString())
    assert solution.row_impulse.shape == solution.row_velocity.shape == (0,)
    assert solution.angular_impulse.shape == (0, 3)
    assert solution.islands[0].contacts == 1
    assert solution.islands[0].rows == 0
    assert np.isnan(solution.islands[0].cost)
    assert len(sap.Solution(b"").islands) == 0


def test_parts_of_a_message_in_a_message_are_merged() -> None:
    descriptor = problem_pb2.Contacts.DESCRIPTOR
    tag = wire_format.length_tag(descriptor, "hunt_crossley")
    first = problem_pb2.HuntCrossley(elastic_force=[1.0], dissipation=[2.0]).SerializeToString()
    second = problem_pb2.HuntCrossley(elastic_force=[3.0]).SerializeToString()
    serialized = b"".join(tag + wire_format.varint(len(part)) + part for part in (first, second))
    merged = sap.Contacts.decode(serialized, 0, len(serialized)).hunt_crossley
    assert merged is not None
    assert merged.elastic_force.tolist() == [1.0, 3.0]
    assert merged.dissipation.tolist() == [2.0]


def test_arrays_of_a_group_in_a_group_are_repeated_for_its_contacts() -> None:
    hunt_crossley = sap.HuntCrossley(elastic_force=[1.0, 2.0], dissipation=0.5)
    contacts = sap.Contacts(
        tree_a=[0, 1], law=sap.ContactLaw.HUNT_CROSSLEY_SIMILAR, hunt_crossley=hunt_crossley
    )
    message = problem_pb2.ContactProblem.FromString(
        sap.Problem(0.5, contacts=contacts).to_bytes()
    ).contacts
    assert list(message.law) == [problem_pb2.CONTACT_LAW_HUNT_CROSSLEY_SIMILAR] * 2
    assert list(message.hunt_crossley.elastic_force) == [1.0, 2.0]
    assert list(message.hunt_crossley.dissipation) == [0.5, 0.5]
    assert not message.hunt_crossley.lagged_normal_impulse


def test_an_absent_group_in_a_group_is_not_written() -> None:
    contacts = sap.Contacts(tree_a=[0], hunt_crossley=sap.HuntCrossley())
    message = problem_pb2.ContactProblem.FromString(sap.Problem(0.5, contacts=contacts).to_bytes())
    assert not message.contacts.HasField("hunt_crossley")
    assert sap.Contacts().hunt_crossley is None


def test_rows_of_the_contacts_with_angular_axes_are_not_repeated() -> None:
    contacts = sap.Contacts(tree_a=[0, 0], target_angular_velocity=[[1.0, 2.0, 3.0]])
    message = problem_pb2.ContactProblem.FromString(sap.Problem(0.5, contacts=contacts).to_bytes())
    assert list(message.contacts.target_angular_velocity) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("law", "error"),
    [
        ([1, 128], r"contacts\.law\[1\] is 128; it must be in \[0, 127\]"),
        (np.array([200], np.uint8), r"contacts\.law\[0\] is 200"),
        ([-1], r"contacts\.law\[0\] is -1"),
        ([0.5], r"contacts\.law has type float64; integers are needed"),
    ],
)
def test_laws_that_are_no_small_integers_are_refused(law: object, error: str) -> None:
    with pytest.raises(sap.InvalidArgument, match=error):
        sap.Contacts(law=law)  # type: ignore[arg-type]  # on purpose


def test_unknown_laws_of_a_message_are_refused_by_name() -> None:
    contacts = problem_pb2.Contacts()
    contacts.law.extend([300, -1])  # type: ignore[list-item]  # on purpose
    serialized = contacts.SerializeToString()
    with pytest.raises(sap.InvalidArgument, match=r"contacts\.law\[0\] is 300"):
        sap.Contacts.decode(serialized, 0, len(serialized))


def test_a_group_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(sap.InvalidArgument, match="hunt_crossley has type dict; HuntCrossley"):
        sap.Contacts(hunt_crossley={})  # type: ignore[arg-type]  # on purpose


def test_single_numbers_and_rows_are_repeated() -> None:
    message = problem_pb2.ContactProblem.FromString(balls_on_floor([0.0] * 3).to_bytes())
    assert list(message.bodies.mass) == [1, 1, 1]
    assert list(message.bodies.inertia) == [0.004, 0.004, 0.004, 0, 0, 0] * 3
    assert list(message.body_contacts.friction) == [0.5] * 3
    assert list(message.body_contacts.normal) == [0, 0, 1] * 3


def test_arrays_of_the_right_type_are_not_copied() -> None:
    friction = np.array([0.1, 0.2])
    contacts = sap.Contacts(friction=friction)
    assert contacts.friction is friction
    assert sap.Contacts(friction=friction[::-1]).friction.tolist() == [0.2, 0.1]


def test_arrays_in_pieces_and_single_numbers_are_read() -> None:
    numbers = np.array([1.5, 2.5])
    tag = wire_format.length_tag(solution_pb2.ContactSolution.DESCRIPTOR, "velocity")
    piece = tag + wire_format.varint(16) + numbers.tobytes()
    message = problem_pb2.Trees(dofs=[1], free_motion_velocity=[1.5])
    field = problem_pb2.Trees.DESCRIPTOR.fields_by_name["free_motion_velocity"].number
    single = wire_format.varint(field << 3 | wire_format.FIXED64) + np.array([2.5]).tobytes()
    tree = message.SerializeToString() + single
    tag = wire_format.length_tag(problem_pb2.ContactProblem.DESCRIPTOR, "trees")
    problem = sap.Problem.from_bytes(tag + wire_format.varint(len(tree)) + tree)
    assert problem.trees.free_motion_velocity.tolist() == [1.5, 2.5]
    twice = (tag + wire_format.varint(len(tree)) + tree) * 2
    assert sap.Problem.from_bytes(twice).trees.dofs.tolist() == [1, 1]
    assert sap.Solution(piece).velocity.tolist() == [1.5, 2.5]


def test_unknown_fields_are_skipped_and_malformed_ones_refused() -> None:
    later = (
        wire_format.varint(500 << 3 | wire_format.LENGTH)
        + b"\x02ab"
        + wire_format.varint(501 << 3)
        + b"\x81\x01"
    )
    later += wire_format.varint(502 << 3 | wire_format.FIXED32) + bytes(4)
    assert sap.Solution(later).velocity.size == 0
    assert sap.Problem.from_bytes(sap.Problem(0.25).to_bytes() + later).time_step == 0.25
    with pytest.raises(ValueError, match="ends within"):
        wire_format.scan(b"\x0a\x7f", 0, 2)
    with pytest.raises(ValueError, match="unknown wire type"):
        wire_format.scan(b"\x0b", 0, 1)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32, 2**63])
def test_varints_are_read_as_written(value: int) -> None:
    assert wire_format.read_varint(b"x" + wire_format.varint(value) + b"y", 1) == (
        value,
        1 + len(wire_format.varint(value)),
    )


def test_requests_are_what_protobuf_reads() -> None:
    problem = balls_on_floor([0.2])
    options = sap.Options(
        relative_tolerance=0.0,
        absolute_speed_tolerance=1e-9,
        max_iterations=7,
        time_budget=0.25,
        islands=False,
        newton=sap.NewtonMethod.PLAIN,
        response_mask=("velocity", "cost"),
        priority=sap.Priority.HIGH,
    )
    assert from_message(to_message(options)) == options
    assert from_message(to_message(sap.Options())) == sap.Options()
    request = solver_service_pb2.SolveRequest.FromString(messages.solve_request(problem, options))
    assert request.problem.SerializeToString() == problem.to_bytes()
    assert request.options == to_message(options)
    step = solver_service_pb2.SolveSessionRequest.FromString(
        messages.step_request(300, problem, options)
    ).step
    assert (step.step_id, step.options) == (300, to_message(options))
    assert step.problem.SerializeToString() == problem.to_bytes()
    batch = solver_service_pb2.SolveBatchRequest.FromString(
        messages.batch_request([problem, problem], None)
    )
    assert len(batch.problems) == 2
    assert not batch.HasField("options")
    for low_latency in (False, True):
        opening = solver_service_pb2.SolveSessionRequest.FromString(
            messages.open_request(options, low_latency)
        )
        assert opening.open.options == to_message(options)
        assert opening.open.low_latency == low_latency


def test_requests_of_derivatives_are_what_protobuf_reads() -> None:
    problem = balls_on_floor([0.2, 0.3])
    direction = sap.Problem(
        0.125,
        bodies=sap.RigidBodies(mass=1.0, inertia=[1, 2, 3, 4, 5, 6]),
        regularization=sap.Regularization(sigma=0.5),
    )
    request = sap.DifferentiateRequest(
        problem,
        [sap.Cotangent(velocity=np.arange(12), cost=2.0), sap.Cotangent(impulse=np.ones((2, 3)))],
        [direction],
        velocity=np.ones(12),
        wanted=["bodies.mass", "applied_impulse"],
        hold_delassus=True,
        options=sap.Options(max_iterations=7),
    )
    serialized = messages.differentiate_request(request)
    message = solver_service_pb2.DifferentiateRequest.FromString(serialized)
    assert message.problem.SerializeToString() == problem.to_bytes()
    assert message.options.max_iterations == 7
    assert list(message.velocity) == [1.0] * 12
    assert list(message.cotangents[0].velocity) == list(range(12))
    assert message.cotangents[0].cost == 2.0
    assert list(message.cotangents[1].impulse) == [1.0] * 6
    (tangent,) = message.tangents
    assert (tangent.time_step, tangent.regularization.sigma) == (0.125, 0.5)
    assert list(tangent.bodies.mass) == [1.0, 1.0]
    assert list(tangent.bodies.inertia) == [1, 2, 3, 4, 5, 6] * 2
    assert list(message.wanted.paths) == ["bodies.mass", "applied_impulse"]
    assert message.hold_delassus
    batch = solver_service_pb2.DifferentiateBatchRequest.FromString(
        messages.differentiate_batch_request([request, request], 0.25)
    )
    assert list(batch.requests) == [message, message]
    assert batch.time_budget.ToTimedelta().total_seconds() == 0.25


@pytest.mark.parametrize("seed", range(5))
def test_random_derivatives_are_what_protobuf_reads(seed: int) -> None:
    rng = np.random.default_rng(seed)
    message = solver_service_pb2.DifferentiateResponse(
        kink_margin=[0.5, 0.25], adjoint_status=["ADJOINT_STATUS_INACCURATE"]
    )
    part = random_message(solution_pb2.ContactSolution.DESCRIPTOR, rng, omitted=0.0)
    message.solution.ParseFromString(part.SerializeToString())
    for _ in range(2):
        part = random_message(gradient_pb2.Gradient.DESCRIPTOR, rng, omitted=0.3)
        message.gradients.add().ParseFromString(part.SerializeToString())
        part = random_message(gradient_pb2.Tangent.DESCRIPTOR, rng, omitted=0.0)
        message.tangents.add().ParseFromString(part.SerializeToString())
    read = messages.derivatives_of_response(message.SerializeToString())
    assert read.kink_margin.tolist() == [0.5, 0.25]
    assert read.adjoint_status.tolist() == [sap.AdjointStatus.INACCURATE]
    assert not read.accurate
    assert read.solution.velocity.tolist() == list(message.solution.velocity)
    for gradient, expected in zip(read.gradients, message.gradients, strict=True):
        assert gradient.time_step == expected.gradient.time_step
        for field in ("applied_impulse", "delassus_estimate"):
            assert list(getattr(expected, field)) == getattr(gradient, field).tolist()
        for group, value in expected.gradient.ListFields():
            if group.name in GROUPS:
                for array, numbers in value.ListFields():
                    if not array.message_type:
                        found = getattr(getattr(gradient, group.name), array.name)
                        assert np.array_equal(np.ravel(found), numbers)
    for tangent, expected_tangent in zip(read.tangents, message.tangents, strict=True):
        for array, numbers in expected_tangent.ListFields():
            assert np.array_equal(np.ravel(getattr(tangent, array.name)), np.ravel(numbers))


def test_outcomes_of_derivatives_are_results_or_errors() -> None:
    batch = solver_service_pb2.DifferentiateBatchResponse()
    batch.outcomes.add().derivatives.solution.velocity.append(1.5)
    batch.outcomes.add().failure.CopyFrom(
        solver_service_pb2.Failure(code=3, message="wrong", field="cotangents[0].cost")
    )
    batch.outcomes.add()
    found, failed, empty = messages.derivatives_of_batch(batch.SerializeToString())
    assert isinstance(found, sap.Derivatives)
    assert found.solution.velocity.tolist() == [1.5]
    assert isinstance(failed, sap.InvalidArgument)
    assert failed.field == "cotangents[0].cost"
    assert isinstance(empty, sap.Internal)
    with pytest.raises(sap.Internal, match="no solution"):
        messages.derivatives_of_response(b"")


def test_solution_is_what_protobuf_reads(client: sap.Client) -> None:
    solution = client.solve(balls_on_floor([0.0, 0.7, 3.0]))
    message = solution_pb2.ContactSolution.FromString(solution.to_bytes())
    assert list(message.velocity) == solution.velocity.tolist()
    assert list(message.impulse) == solution.impulse.ravel().tolist()
    assert list(message.island_of_tree) == solution.island_of_tree.tolist()
    assert message.cost == solution.cost
    islands = solution.islands
    for field in solution_pb2.IslandReports.DESCRIPTOR.fields:
        assert list(getattr(message.islands, field.name)) == getattr(islands, field.name).tolist()
    assert message.timings.solve_s == solution.timings.solve_s
    assert not solution.velocity.flags.writeable
