"""Gymnasium environments: its checker passes, seeds repeat, a vector has the bits of its parts."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
import sap_islands as sap
from gymnasium.utils.env_checker import check_env
from sap_islands.arrays import FloatArray
from sap_islands.gymnasium import ClutterEnv, ClutterVectorEnv

from support.server_process import ServerProcess
from support.worlds import library

NAME = "sap_islands/Clutter-v0"
STEPS = 12


def make(client: sap.Client, **arguments: Any) -> ClutterEnv:
    """The environment without wrappers."""
    env = gymnasium.make(NAME, address=client.address, **arguments).unwrapped
    assert isinstance(env, ClutterEnv)
    return env


def make_vector(client: sap.Client, count: int, **arguments: Any) -> ClutterVectorEnv:
    envs = gymnasium.make_vec(NAME, num_envs=count, address=client.address, **arguments)
    assert isinstance(envs, ClutterVectorEnv)
    return envs


def random_actions(count: int, *shape: int) -> FloatArray:
    return np.random.default_rng(3).uniform(-1, 1, (count, *shape, 2)).astype(np.float32)


def test_environment_passes_the_checker_of_gymnasium(client: sap.Client) -> None:
    env = make(client)
    check_env(env)
    env.close()


def test_environment_starts_a_server_of_its_own() -> None:
    name = f"sap_islands.gymnasium:{NAME}"
    with gymnasium.make(name, objects=3, address="embedded:") as env:
        env.reset(seed=1)
        assert env.step(env.action_space.sample())[0] in env.observation_space


def test_episode_repeats_bit_for_bit(client: sap.Client) -> None:
    env = make(client)
    found = []
    for _ in range(2):
        seen = [env.reset(seed=5)[0]]
        seen += [env.step(action)[0] for action in random_actions(STEPS)]
        found.append(np.array(seen))
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(env.reset()[0], found[0][0])
    env.close()


def test_vector_has_the_bits_of_its_environments(client: sap.Client) -> None:
    count, seed = 4, 7
    envs = make_vector(client, count, max_episode_steps=STEPS // 2, objects=8)
    actions = random_actions(STEPS, count)
    first, first_infos = envs.reset(seed=seed)
    found = [envs.step(each) for each in actions]
    assert first.shape == envs.observation_space.shape
    for i in range(count):
        env = make(client, objects=8)
        limited = gymnasium.wrappers.TimeLimit(env, STEPS // 2)
        observation, info = limited.reset(seed=seed + i)
        assert np.array_equal(first[i], observation)
        assert first_infos["distance"][i] == info["distance"]
        ended = False
        for action, (seen, reward, reached, truncated, infos) in zip(
            actions[:, i], found, strict=True
        ):
            if ended:  # the step of a vector that resets
                observation, info = limited.reset()
                expected: tuple[Any, ...] = (0.0, False, False)
            else:
                observation, *rest, info = limited.step(action)
                expected = tuple(rest)
            assert np.array_equal(seen[i], observation)
            assert (reward[i], reached[i], truncated[i]) == expected
            assert infos["distance"][i] == info["distance"]
            ended = reached[i] or truncated[i]
        env.close()
    assert np.array([step[3] for step in found]).sum() == count
    envs.close()


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_steps_of_this_process_have_the_bits_of_a_server(
    client: sap.Client, threads: int | None
) -> None:
    served = make_vector(client, 4, objects=6)
    own = gymnasium.make_vec(NAME, num_envs=4, objects=6, threads=threads)
    alone = gymnasium.make(NAME, objects=6)
    for envs in (served, own):
        envs.reset(seed=11)
    alone.reset(seed=11)
    for actions in random_actions(STEPS, 4):
        observations = own.step(actions)[0]
        assert np.array_equal(observations, served.step(actions)[0])
        assert np.array_equal(observations[0], alone.step(actions[0])[0])
    for each in (served, own, alone):
        each.close()


def test_a_vector_at_a_server_has_the_bits_of_one_here() -> None:
    flags = ("--mujoco-library", str(library()), "--threads=2")
    with ServerProcess("127.0.0.1:0", *flags) as server:
        here, there = (
            gymnasium.make_vec(NAME, num_envs=5, objects=3, address=address)
            for address in (None, server.address)
        )
        alone = gymnasium.make(NAME, objects=3, address=server.address)
        first, _ = alone.reset(seed=0)
        for envs in (here, there):
            observations, _ = envs.reset(seed=0)
            assert np.array_equal(observations[0], first)
        for actions in random_actions(STEPS, 5):
            expected, found = here.step(actions), there.step(actions)
            assert np.array_equal(found[0], expected[0])
            assert np.array_equal(alone.step(actions[0])[0], expected[0][0])
        for each in (here, there, alone):
            each.close()


def test_pusher_moves_the_object_to_the_goal(client: sap.Client) -> None:
    env = make(client, objects=1)
    env.reset(seed=2)
    env.task.data.qpos[:4] = [-0.12, 0, -0.02, 0]  # pusher, then object
    env.task.data.qpos[5:9] = [1, 0, 0, 0]
    env.task.goal[:] = [0.1, 0]
    rewards: list[float] = []
    reached = False
    while not reached and len(rewards) < 100:
        observation, reward, reached, truncated, info = env.step(np.array([1, 0], np.float32))
        rewards.append(reward)
        assert not truncated
    assert reached
    assert info["is_success"]
    assert info["distance"] == pytest.approx(np.hypot(*(observation[6:8] - [0.1, 0])))
    assert 0 < info["distance"] < 0.05
    # At 0.5 m/s, 7 cm and the gap take 0.14 to 0.2 s.
    assert 14 <= len(rewards) <= 25
    assert rewards[-1] > 0.9
    assert max(rewards[:-1]) < 0
    env.close()


def test_actions_that_do_not_fit_are_refused_by_name(client: sap.Client) -> None:
    env, envs = make(client, objects=2), make_vector(client, 3, objects=2)
    env.reset(seed=1)
    envs.reset(seed=1)
    wrong: list[Any] = [np.array([np.nan, 0.0]), np.zeros(3), 0.5]
    for action in wrong:
        with pytest.raises(sap.InvalidArgument, match="two finite numbers are needed") as caught:
            env.step(action)
        assert caught.value.field == "action"
    with pytest.raises(sap.InvalidArgument, match="2 actions for 3 environments"):
        envs.step(np.zeros((2, 2), np.float32))
    with pytest.raises(sap.InvalidArgument, match="two finite numbers are needed"):
        envs.step(np.zeros(3, np.float32))
    env.close()
    envs.close()


def test_bin_without_objects_is_refused() -> None:
    with pytest.raises(sap.InvalidArgument, match="objects is 0"):
        ClutterEnv(objects=0)


def test_processes_of_gymnasium_connect_by_themselves(client: sap.Client) -> None:
    program = f"""
import gymnasium, numpy as np
import sap_islands.gymnasium
arguments = dict(num_envs=2, objects=3, address={client.address!r})
envs = gymnasium.make_vec({NAME!r}, vectorization_mode="async", **arguments)
mine = gymnasium.make_vec({NAME!r}, **arguments)
actions = np.full((2, 2), 0.5, np.float32)
envs.reset(seed=1), mine.reset(seed=1)
print((envs.step(actions)[0] == mine.step(actions)[0]).all())
envs.close(), mine.close()
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert result.stdout == "True\n", result.stderr
