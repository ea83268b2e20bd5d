"""The calls of tests/e2e/doors/calls.json by this package: the words of the file, and one answer.

tests/e2e/doors/doors_test.cc gives them to C++, C and sap-client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
from sap_islands.problem_files import problem_from_json

from conftest import ROOT
from support.server_process import ServerProcess

FILE = json.loads((ROOT / "tests" / "e2e" / "doors" / "calls.json").read_text())
OUTPUTS = ("velocity", "impulse", "contact_velocity", "row_impulse", "row_velocity")
ISLANDS = ("status", "iterations", "momentum_residual", "optimality_gap_bound", "cost")


def merged(base: Any, change: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(change, dict):
        return change
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def requests_of(call: dict[str, Any]) -> list[dict[str, Any]]:
    """The requests, whose problems are objects."""
    requests = [
        merged(FILE["request"], change) for change in call.get("changes", [call.get("change", {})])
    ]
    for request in requests:
        if "file" in call:
            request["problem"] = sap.load_problem(ROOT / "tests" / "data" / f"{call['file']}.json")
        else:
            request["problem"] = problem_from_json(json.dumps(request["problem"]))
    requests = requests[:1] * call.get("times", 1) if len(requests) == 1 else requests
    if "cotangents" in call:
        requests[0]["cotangents"] = requests[0]["cotangents"] * call["cotangents"]
    return requests


def options_of(request: dict[str, Any]) -> sap.Options | None:
    if "options" not in request:
        return None
    values = dict(request["options"])
    for name in ("relative_tolerance", "absolute_speed_tolerance"):
        if name in values:
            values[name] = float(values[name])
    if "time_budget" in values:
        values["time_budget"] = float(values["time_budget"].removesuffix("s"))
    if "response_mask" in values:
        values["response_mask"] = tuple(values["response_mask"].split(","))
    if "newton" in values:
        values["newton"] = sap.NewtonMethod[values["newton"].removeprefix("NEWTON_METHOD_")]
    if "priority" in values:
        values["priority"] = sap.Priority[values["priority"].removeprefix("PRIORITY_")]
    if "coulomb" in values:
        values["coulomb"] = sap.CoulombFriction(**values["coulomb"])
    if "rest" in values:
        values["rest"] = sap.Rest(**values["rest"])
    return sap.Options(**values)


def differentiation_of(request: dict[str, Any]) -> sap.DifferentiateRequest:
    return sap.DifferentiateRequest(
        request["problem"],
        [sap.Cotangent(**cotangent) for cotangent in request.get("cotangents", [])],
        [problem_from_json(json.dumps(tangent)) for tangent in request.get("tangents", [])],
        np.array(request.get("velocity", []), float),
        request["wanted"].split(",") if "wanted" in request else (),
        request.get("hold_delassus", False),
        options_of(request),
    )


def reply_of(outcome: Any) -> tuple[str, list[bytes]]:
    """The error as in the file, and all numbers that are a function of the request."""
    if isinstance(outcome, sap.SapError):
        return f"{outcome.code.name} [{outcome.field}] {outcome.message}", []
    solution = getattr(outcome, "solution", outcome)
    numbers = [getattr(solution, name) for name in OUTPUTS]
    numbers += [solution.cost] + [getattr(solution.islands, name) for name in ISLANDS]
    for gradient in getattr(outcome, "gradients", ()):
        numbers += [gradient.time_step, gradient.applied_impulse, gradient.delassus_estimate]
        numbers += [gradient.contacts.friction, gradient.contacts.stiffness]
        numbers += [gradient.trees.free_motion_velocity]
    for tangent in getattr(outcome, "tangents", ()):
        numbers += [getattr(tangent, name) for name in OUTPUTS]
    return "", [np.asarray(values).tobytes() for values in numbers]


def outcome_of(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except sap.SapError as error:
        return error


def outcomes_of(client: sap.Client, call: dict[str, Any]) -> list[Any]:
    requests = requests_of(call)
    problems = [request["problem"] for request in requests]
    options = options_of(requests[0]) if requests else None
    timeout = call.get("deadline_s")
    if call["call"] == "solve":
        return [outcome_of(lambda: client.solve(problems[0], options, timeout=timeout))]
    if call["call"] == "solve_batch":
        solved = outcome_of(lambda: client.solve_batch(problems, options))
        return [solved] * len(problems) if isinstance(solved, sap.SapError) else solved
    if call["call"] == "session":
        with client.session() as session:
            steps = [
                partial(session.step, request["problem"], options_of(request))
                for request in requests
            ]
            return [outcome_of(step) for step in steps]
    asked = [differentiation_of(request) for request in requests]
    if call["call"] == "differentiate_batch":
        return client.differentiate_batch(asked)
    one = asked[0]
    return [
        outcome_of(
            lambda: client.differentiate(
                one.problem,
                one.cotangents,
                tangents=one.tangents,
                velocity=one.velocity,
                wanted=one.wanted,
                hold_delassus=one.hold_delassus,
                options=one.options,
            )
        )
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[sap.Client]:
    with ServerProcess("127.0.0.1:0") as process, sap.connect(process.address) as client:
        yield client


@pytest.mark.parametrize("call", FILE["calls"], ids=lambda call: call["name"])
def test_this_process_and_a_server_answer_as_the_file_says(
    call: dict[str, Any], client: sap.Client, server: sap.Client
) -> None:
    here = [reply_of(outcome) for outcome in outcomes_of(client, call)]
    there = [reply_of(outcome) for outcome in outcomes_of(server, call)]
    words = call.get("errors", [call.get("error", "")] * len(here))
    assert [error for error, _ in here] == words
    words_there = [call["error_of_server"]] * len(here) if "error_of_server" in call else words
    assert [error for error, _ in there] == words_there
    if words == words_there:
        assert here == there


def test_this_process_has_no_limit_but_those_of_counts(client: sap.Client) -> None:
    limits = client.info().limits
    assert limits["max_contacts"] < 2**31 - 1
    assert limits["max_iterations"] == limits["max_batch_problems"] == 2**31 - 1
    assert limits["max_derivatives"] == limits["max_steps_in_flight"] == 2**32 - 1
    assert limits["max_solve_memory_bytes"] == 2**64 - 1
