"""Scenes of Newton, stepped on the CPU by SapSolver. Importing this skips a test without Newton."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import pytest

newton = pytest.importorskip("newton", reason="Newton is installed by tests/python.sh --full")
# Not skipped over: where Newton is installed, these must load.
wp = importlib.import_module("warp")
sap_newton = importlib.import_module("sap_islands.newton")

G = 9.81
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


class Scene:
    """A model that is stepped on the CPU."""

    def __init__(
        self, build: Callable[[Any], object], time_step: float = 0.005, **settings: Any
    ) -> None:
        builder = newton.ModelBuilder(gravity=(0.0, 0.0, -G))
        build(builder)
        self.model = builder.finalize(device="cpu")
        self.dt = time_step
        self.state, self._next = self.model.state(), self.model.state()
        newton.eval_fk(self.model, self.model.joint_q, self.model.joint_qd, self.state)
        self.control = self.model.control()
        self.pipeline = newton.CollisionPipeline(self.model)
        self.contacts = self.pipeline.contacts()
        self.solver = sap_newton.SapSolver(self.model, on_unsolved="raise", **settings)

    def step(self) -> None:
        self.state.clear_forces()
        self.pipeline.collide(self.state, self.contacts)
        self.solver.step(self.state, self._next, self.control, self.contacts, self.dt)
        self.state, self._next = self._next, self.state

    def run(self, seconds: float) -> Scene:
        for _ in range(round(seconds / self.dt)):
            self.step()
        return self

    def position(self, body: int) -> Any:
        return self.state.body_q.numpy()[body, :3].astype(float)

    def velocity(self, body: int) -> Any:
        return self.state.body_qd.numpy()[body].astype(float)

    def normal_force(self) -> float:
        solution = self.solver.solution
        assert solution is not None
        return float(solution.impulse.reshape(-1, 3)[:, 2].sum() / self.dt)


def add_box(
    builder: Any,
    position: tuple[float, float, float],
    half: tuple[float, float, float],
    mass: float,
    friction: float = 0.5,
) -> int:
    body = builder.add_body(xform=wp.transform(position, UPRIGHT))
    shape = newton.ModelBuilder.ShapeConfig(density=mass / (8 * math.prod(half)), mu=friction)
    builder.add_shape_box(body, hx=half[0], hy=half[1], hz=half[2], cfg=shape)
    return int(body)


def add_ground(builder: Any, friction: float = 0.5) -> None:
    builder.add_ground_plane(cfg=newton.ModelBuilder.ShapeConfig(mu=friction))
