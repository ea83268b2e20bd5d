"""One scene over several servers: the bits of the undivided solution, or the scene stays whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
from sap_islands import aio

from support.scenes import bits
from support.stacks import stacks


@pytest.fixture(scope="module")
def scene() -> sap.Problem:
    """Large enough to be worth two servers of one thread."""
    return stacks(80, 40)


@pytest.fixture(scope="module")
def server() -> Iterator[sap.Client]:
    """A client of a server with one thread, which stands for several."""
    with sap.connect("embedded:process", server_arguments=["--threads", "1"]) as client:
        yield client


def test_a_scene_on_several_servers_has_the_bits_of_one(scene: sap.Problem, tmp_path: Path) -> None:
    flags = ["--threads", "1", "--record", str(tmp_path)]

    async def in_two(address: str) -> sap.Solution:
        async with aio.connect(address) as client:
            return await client.solve(scene, split=2)

    with sap.connect("embedded:process", server_arguments=flags) as recorded:
        expected = bits(recorded.solve(scene))
        assert bits(recorded.solve(scene, split=3)) == expected
        assert bits(asyncio.run(in_two(recorded.address))) == expected
        assert bits(recorded.solve(scene, split=True)) == expected  # one address
        recorded.solve(stacks(1, 60), split=3)
    sizes = [
        record.problem.bodies.count for f in tmp_path.iterdir() for record in sap.read_recording(f)
    ]
    shards = [size for size in sizes if size not in (80 * 40, 60)]
    assert sizes.count(80 * 40) == 2
    assert sizes.count(60) == 1
    assert len(shards) == 3 + 2
    assert sum(shards) == 2 * 80 * 40


def test_errors_are_those_of_the_whole(server: sap.Client, scene: sap.Problem) -> None:
    def error_of(problem: sap.Problem, **arguments: Any) -> sap.InvalidArgument:
        with pytest.raises(sap.InvalidArgument) as raised:
            server.solve(problem, **arguments)
        return raised.value

    last = scene.body_contacts.count - 1
    friction = np.full(last + 1, 0.5)
    friction[last] = -0.3
    fault = stacks(80, 40)
    fault.body_contacts.friction = friction
    assert error_of(fault, split=3).field == f"body_contacts.friction[{last}]"
    options = sap.Options(response_mask=("speed",))
    assert error_of(scene, options=options, split=3).field == "options.response_mask.paths[0]"


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2"])
def test_what_is_no_number_of_servers_is_refused(client: sap.Client, wrong: Any) -> None:
    with pytest.raises(sap.InvalidArgument, match="split is") as caught:
        client.solve(stacks(2, 1), split=wrong)
    assert caught.value.field == "split"


def test_an_embedded_solver_never_splits(client: sap.Client) -> None:
    assert client.solve(stacks(3, 2), split=3).solved
