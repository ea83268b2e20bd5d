"""Clutter-v0 as an environment and as a vector environment of Gymnasium."""

from __future__ import annotations

import os
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from sap_islands import mujoco as adapter
from sap_islands.arrays import FloatArray
from sap_islands.client import Client, connect
from sap_islands.errors import InvalidArgument
from sap_islands.gymnasium.clutter import (
    TIME_STEP,
    Clutter,
    action_space,
    make_model,
    observation_space,
)

_METADATA: dict[str, Any] = {"render_modes": [], "render_fps": round(1 / TIME_STEP)}
_VECTOR_METADATA = {**_METADATA, "autoreset_mode": AutoresetMode.NEXT_STEP}


class ClutterEnv(gymnasium.Env[FloatArray, NDArray[np.float32]]):
    """A pusher moves one object to a goal, among others: see `Clutter`.

    Equal seeds and actions give equal bits. There are no render modes: `task.model` and `task.data`
    are MuJoCo's, for its viewer.

    Attributes:
        task: Model and state of the episode.
    """

    metadata: dict[str, Any] = _METADATA  # as Gymnasium declares it

    def __init__(
        self, *, objects: int = 20, address: str | None = None, render_mode: None = None
    ) -> None:
        """Makes the environment; the first step connects.

        Args:
            objects: Number of objects, the one to move included.
            address: Of servers that step worlds, as for `sap_islands.connect`; None: steps are
                taken in this process.
            render_mode: There is none.
        """
        self.task = Clutter(make_model(objects))
        self.observation_space = observation_space(objects)
        self.action_space = action_space()
        self._connection = _Connection(address)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Starts an episode; there are no options."""
        super().reset(seed=seed, options=options)
        self.task.begin(self.np_random)
        return self.task.observation(), self.task.judge()[2]

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Takes a step of 10 ms."""
        self.task.act(action)
        client = self._connection.client()
        if client is None:
            adapter.advance(self.task.model, self.task.data)
        else:
            adapter.advance_batch(self.task.model, [self.task.data], client)
        reward, reached, info = self.task.judge()
        return self.task.observation(), reward, reached, False, info

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


class ClutterVectorEnv(VectorEnv[FloatArray, NDArray[np.float32], NDArray[Any]]):
    """Many environments, stepped on threads or at servers.

    Each has the bits of a `ClutterEnv` with its seed. After the end of an episode the next step
    resets the environment and ignores its action (`AutoresetMode.NEXT_STEP`).

    Attributes:
        tasks: Model and state of each environment.
    """

    metadata: dict[str, Any] = _VECTOR_METADATA  # as Gymnasium declares it

    def __init__(
        self,
        num_envs: int = 1,
        *,
        max_episode_steps: int = 500,
        objects: int = 20,
        address: str | None = None,
        threads: int | None = None,
        render_mode: None = None,
    ) -> None:
        """Makes the environments; the first step connects.

        Args:
            num_envs: Number of environments.
            max_episode_steps: After which episodes are truncated.
            objects: As for `ClutterEnv`.
            address: As for `ClutterEnv`.
            threads: Number of threads in this process; None: as many as there are processors, and
                environments.
            render_mode: As for `ClutterEnv`.
        """
        model = make_model(objects)
        self.tasks = [Clutter(model) for _ in range(num_envs)]
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.single_observation_space = observation_space(objects)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._connection = _Connection(address)
        processors = len(os.sched_getaffinity(0))
        self._threads = max(1, min(processors, num_envs)) if threads is None else threads
        self._randoms = [seeding.np_random()[0] for _ in self.tasks]
        self._steps = np.zeros(num_envs, int)
        self._ended = np.zeros(num_envs, bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Starts an episode in every environment; there are no options.

        Args:
            seed: Of each environment; an integer stands for seed, seed + 1, ...
            options: Not read.
        """
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        for i, each in enumerate(seeds or []):
            if each is not None:
                self._randoms[i] = seeding.np_random(each)[0]
        infos: dict[str, Any] = {}
        for i in range(self.num_envs):
            infos = self._add_info(infos, self._begin(i), i)
        return self._observations(), infos

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[FloatArray, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Takes a step of 10 ms in every environment."""
        if len(actions) != self.num_envs:
            message = f"there are {len(actions)} actions for {self.num_envs} environments"
            raise InvalidArgument(message, "actions")
        begins = self._ended
        going_on = [task for task, ended in zip(self.tasks, begins, strict=True) if not ended]
        for task, action, ended in zip(self.tasks, actions, begins, strict=True):
            if not ended:
                task.act(action)
        if going_on:
            self._advance(going_on)
        self._steps += 1
        rewards, reached = np.zeros(self.num_envs), np.zeros(self.num_envs, bool)
        infos: dict[str, Any] = {}
        for i, task in enumerate(self.tasks):
            if begins[i]:
                info = self._begin(i)
            else:
                rewards[i], reached[i], info = task.judge()
            infos = self._add_info(infos, info, i)
        truncated = self._steps >= self.max_episode_steps
        self._ended = reached | truncated
        return self._observations(), rewards, reached, truncated, infos

    def close_extras(self, **_: Any) -> None:
        """Closes the connection."""
        self._connection.close()

    def _advance(self, tasks: list[Clutter]) -> None:
        model, data = tasks[0].model, [task.data for task in tasks]
        adapter.advance_batch(model, data, self._connection.client(), threads=self._threads)

    def _begin(self, i: int) -> dict[str, Any]:
        self.tasks[i].begin(self._randoms[i])
        self._steps[i], self._ended[i] = 0, False
        return self.tasks[i].judge()[2]

    def _observations(self) -> FloatArray:
        return np.array([task.observation() for task in self.tasks])


class _Connection:
    """A client that is made when it is first asked for, in the process that asks."""

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._client: Client | None = None

    def client(self) -> Client | None:
        """The client; None: there is no address."""
        if self._client is None and self._address is not None:
            self._client = connect(self._address)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
