"""Recordings: what the server or `RecordingWriter` wrote is read back unchanged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sap_islands as sap

from support.scenes import balls_on_floor, pushed_steps, same_bits


def test_recording_of_the_server_is_read(tmp_path: Path) -> None:
    problems = pushed_steps(4)
    with (
        sap.connect("embedded:process", server_arguments=("--record", str(tmp_path))) as client,
        client.session() as session,
    ):
        solutions = [session.step(problem) for problem in problems]
    (path,) = tmp_path.iterdir()
    records = list(sap.read_recording(path))
    assert len(records) == 4
    for record, problem, solution in zip(records, problems, solutions, strict=True):
        assert isinstance(record.outcome, sap.Solution)
        assert same_bits(record.outcome, solution)
        assert np.array_equal(record.problem.body_contacts.point, problem.body_contacts.point)
        assert record.duration_s > 0
    assert records[2].problem.bodies.guess_velocity.ravel().tolist() == (
        solutions[1].velocity.tolist()
    )


def test_recording_is_read_as_it_was_written(tmp_path: Path, client: sap.Client) -> None:
    good, bad = balls_on_floor([0.2]), balls_on_floor([0.2])
    bad.time_step = -1.0
    path = tmp_path / "recording"
    options = sap.Options(max_iterations=20)
    with sap.RecordingWriter(path, client.info()) as writer:
        writer.write(good, client.solve(good, options), options, duration_s=0.25)
        with pytest.raises(sap.InvalidArgument) as caught:
            client.solve(bad)
        writer.write(bad, caught.value)
    with pytest.raises(sap.InvalidArgument, match="the recording is closed"):
        writer.write(bad, caught.value)
    first, second = sap.read_recording(path)
    assert isinstance(first.outcome, sap.Solution)
    assert same_bits(first.outcome, client.solve(good, options))
    assert (first.options, first.duration_s) == (options, 0.25)
    assert first.version == client.info().version
    assert isinstance(second.outcome, sap.InvalidArgument)
    assert second.outcome.field == "time_step"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(sap.InvalidArgument, match="record 1 is truncated"):
        list(sap.read_recording(path))
