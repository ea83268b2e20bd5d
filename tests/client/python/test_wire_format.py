"""The hand-written encoding and decoding agree with protobuf's."""

from __future__ import annotations

import numpy as np
import pytest
import sap_islands as sap
from sap_islands import messages, wire_format
from sap_islands.options import from_message, to_message
from sap_islands.v1 import problem_pb2, solution_pb2, solver_service_pb2

from conftest import problem_files
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


def test_every_field_of_the_schema_has_its_array() -> None:
    for kind, descriptor in (
        (sap.Trees, problem_pb2.Trees.DESCRIPTOR),
        (sap.RigidBodies, problem_pb2.RigidBodies.DESCRIPTOR),
        (sap.Contacts, problem_pb2.Contacts.DESCRIPTOR),
        (sap.BodyContacts, problem_pb2.BodyContacts.DESCRIPTOR),
    ):
        values = {field.name: [1, 2, 3, 4, 5, 6, 7] for field in descriptor.fields}
        group = kind(**values)
        name = group.FIELD
        problem = sap.Problem(0.5)
        setattr(problem, name, group)
        message = problem_pb2.ContactProblem.FromString(problem.to_bytes())
        for field in descriptor.fields:
            assert list(getattr(getattr(message, name), field.name)) == [1, 2, 3, 4, 5, 6, 7]


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
