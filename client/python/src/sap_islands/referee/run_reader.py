"""Reads the arrays of a run and checks them against a model."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sap_islands.errors import InvalidArgument
from sap_islands.problem_files import PathLike
from sap_islands.referee.runs import Array, Run

Source: TypeAlias = PathLike | Mapping[str, ArrayLike]

REQUIRED = ("qpos", "qvel", "next_qvel")
# Inputs of a step; those that are not recorded have the values of a reset MjData.
INPUTS = (
    "ctrl",
    "act",
    "qfrc_applied",
    "xfrc_applied",
    "mocap_pos",
    "mocap_quat",
    "eq_active",
    "userdata",
    "history",
    "plastic",
    "plugin_state",
)
CONTACT = {
    "dist": (),
    "pos": (3,),
    "frame": (3, 3),
    "geom": (2,),
    "dim": (),
    "includemargin": (),
    "friction": (5,),
    "solref": (2,),
    "solreffriction": (2,),
    "solimp": (5,),
}
_OPTIONAL_CONTACT = {"surfacevel": (3,), "adhesion": ()}
_BELOW = {"geom": 0, "dim": 7}  # bounds of indices; 0: the number of geoms
_ADDRESS = ("contact_efc_address", "efc_address")
_DIMENSIONS = (1, 3, 4, 6)
_LARGEST = float(mujoco.mjMAXVAL)  # MuJoCo resets states with larger numbers
_FRAME_ERROR = 1e-3  # largest error of the products of axes


def read_runs(
    model: mujoco.MjModel, sources: Sequence[Source], sample: int | None, skip_invalid: bool
) -> Iterator[Run]:
    """Reads the files one after the other, each array by array.

    Args:
        model: The model that was simulated.
        sources: Paths of .npz files, or mappings of names to arrays.
        sample: Number of states to choose at random, as many of each file; None: all.
        skip_invalid: Whether states with numbers that are not finite are left out; otherwise they
            are an error.

    Raises:
        InvalidArgument: A file cannot be read, or an array is not what it must be; the message
            names the file, the array, the state and its world.
    """
    shares: list[int | None] = [None] * len(sources)
    if sample is not None:
        each, more = divmod(sample, len(sources))
        shares = [each + (i < more) for i in range(len(sources))]
    for source, share in zip(sources, shares, strict=True):
        name = "run" if isinstance(source, Mapping) else os.fspath(source)
        try:
            with _opened(source) as arrays:
                yield _Reader(model, name, arrays, share, skip_invalid).run()
        except (
            OSError,
            EOFError,
            ValueError,
            MemoryError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            if isinstance(error, InvalidArgument):
                raise
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise InvalidArgument(f"{name}: cannot be read: {reason}", name) from None


@contextmanager
def _opened(source: Source) -> Iterator[Mapping[str, Any]]:
    if isinstance(source, Mapping):
        yield {name: np.asarray(values) for name, values in source.items()}
        return
    with open(source, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is not an .npz file, or was cut short")
        file.seek(0)
        yield np.load(file, allow_pickle=False)


class _Reader:
    """Reads and checks the arrays of one file."""

    def __init__(
        self,
        model: mujoco.MjModel,
        name: str,
        arrays: Mapping[str, Any],
        sample: int | None,
        skip_invalid: bool,
    ) -> None:
        self._model, self._name, self._arrays = model, name, arrays
        self._sample, self._skip_invalid = sample, skip_invalid
        data = mujoco.MjData(model)
        self._shapes = {name: getattr(data, name).shape for name in ("qpos", "qvel")}
        self._shapes["next_qvel"] = data.qvel.shape
        self._shapes |= {name: getattr(data, name).shape for name in INPUTS if hasattr(data, name)}

    def run(self) -> Run:
        for name in REQUIRED:
            if name not in self._arrays:
                raise self._error(name, f"is missing; a run has {', '.join(REQUIRED)}")
        rows = {"qpos": self._read("qpos", self._shapes["qpos"])}
        self._count = count = len(rows["qpos"])
        if not count:
            raise self._error("qpos", "has no states")
        self._world = self._read_world()
        self._valid = np.ones(count, bool)
        names = [name for name in self._shapes if name in self._arrays and name != "qpos"]
        self._check_finite("qpos", rows["qpos"])
        previous, following = _neighbors(self._world)
        for name in names:
            rows[name] = self._read(name, self._shapes[name], count)
            self._check_finite(name, rows[name])
        if "time" in self._arrays:
            rows["time"] = self._read("time", (), count)
            self._check_finite("time", rows["time"])
        self._check_delays()
        contacts = self._read_contacts()
        chosen = self._choose()
        for neighbor in (previous, following):
            neighbor[(neighbor >= 0) & ~self._valid[neighbor]] = -1
        near = np.concatenate((chosen, previous[chosen], following[chosen]))
        kept = np.unique(near[near >= 0])
        of_state = contacts.pop("state", np.empty(0, np.int64))
        wanted = np.isin(of_state, kept)
        return Run(
            self._name,
            count,
            chosen,
            int(count - np.count_nonzero(self._valid)),
            [name for name in self._arrays if not self._is_known(name)],
            self._assumed(),
            self._world,
            previous,
            following,
            "contact_state" in self._arrays,
            kept,
            {name: values[kept] for name, values in rows.items()},
            np.searchsorted(of_state[wanted], np.append(kept, count)),
            {name: values[wanted] for name, values in contacts.items()},
        )

    def _error(self, name: str, problem: str) -> InvalidArgument:
        return InvalidArgument(f"{self._name}: {name} {problem}", name)

    def _is_known(self, name: str) -> bool:
        contacts = {f"contact_{each}" for each in ("state", *CONTACT, *_OPTIONAL_CONTACT)}
        return name in (*self._shapes, "time", "world", *_ADDRESS, *contacts)

    def _assumed(self) -> dict[str, str]:
        assumed = {}
        for name in INPUTS:
            size = int(np.prod(self._shapes.get(name, (0,))))
            if size and name not in self._arrays:
                assumed[name] = f"{size} numbers as after a reset of MjData"
        if "ctrl" in assumed:
            assumed["ctrl"] = f"0 for all {self._shapes['ctrl'][0]} controls"
        for name in ("qfrc_applied", "xfrc_applied"):
            if name in assumed:
                assumed[name] = "0"
        if "contact_state" not in self._arrays:
            assumed["contacts"] = "those that MuJoCo finds"
        return assumed

    def _check_delays(self) -> None:
        """Refuses a run without what a delayed control depends on."""
        if not np.any(getattr(self._model, "actuator_delay", 0.0)):
            return
        for name in ("history", "time"):
            if name not in self._arrays:
                problem = "is missing; controls of actuators with a delay are found by it"
                raise self._error(name, problem)

    def _read(self, name: str, shape: tuple[int, ...], count: int | None = None) -> Array:
        """An array of numbers with `count` rows of a shape; also of rows that are flat."""
        values = np.asarray(self._arrays[name])
        if values.shape == (0,) and (count in (None, 0) or not np.prod(shape)):
            return np.zeros((count or 0, *shape))  # np.array([]) has lost its other dimensions
        if values.dtype.kind not in "fiub":
            raise self._error(name, f"has the type {values.dtype}; it must be of numbers")
        size = int(np.prod(shape))
        rows = len(values) if values.ndim else 0
        is_shaped = values.shape[1:] in (shape, (size,)) or (values.ndim == 1 and size == 1)
        if not values.ndim or not is_shaped or count not in (None, rows):
            wanted = ", ".join(map(str, ("K" if count is None else count, *shape)))
            raise self._error(name, f"has the shape {list(values.shape)}; [{wanted}] is needed")
        return values.reshape(rows, *shape)

    def _read_world(self) -> NDArray[np.int64]:
        if "world" not in self._arrays:
            return np.zeros(self._count, np.int64)
        world = self._read("world", (), self._count)
        whole = np.nan_to_num(world, posinf=0, neginf=0).astype(np.int64)
        wrong = np.flatnonzero(whole != world)
        if wrong.size:
            state = wrong[0]
            raise self._error(
                f"world[{state}]", f"is {world[state]}; it must be a whole number (state {state})"
            )
        return whole

    def _check_finite(self, name: str, values: Array, state: Array | None = None) -> None:
        """Refuses states with numbers that are not finite, or marks them as not valid."""
        if not values.size or (values.dtype.kind in "iub" and values.dtype.itemsize < 5):
            return
        wrong = ~(np.abs(values.reshape(len(values), -1)) <= _LARGEST)
        rows = np.flatnonzero(wrong.any(1))
        if not rows.size:
            return
        states = rows if state is None else state[rows]
        if self._skip_invalid:
            self._valid[states] = False
            return
        row, number = rows[0], int(states[0])
        column = int(np.flatnonzero(wrong[row])[0])
        at = f" at {column}" if wrong.shape[1] > 1 else ""
        raise self._error(
            f"{name}[{row}]",
            f"is {values.reshape(len(values), -1)[row, column]}{at} (state {number}, world "
            f"{self._world[number]}); it must be finite and at most {_LARGEST:g}",
        )

    def _choose(self) -> NDArray[np.int64]:
        valid = np.flatnonzero(self._valid)
        if self._sample is None or self._sample >= len(valid):
            return valid
        return np.sort(np.random.default_rng(0).choice(valid, self._sample, replace=False))

    def _read_contacts(self) -> dict[str, Array]:
        given = [name for name in self._arrays if name.startswith("contact_")]
        if "contact_state" not in self._arrays:
            if given:
                raise self._error("contact_state", f"is missing; {given[0]} needs it")
            return {}
        if self._model.nflex:
            problem = "must be left out: contacts of models with flexes are MuJoCo's"
            raise self._error("contact_state", problem)
        state = self._read_indices("contact_state", (), self._count)
        descents = np.flatnonzero(np.diff(state) < 0) + 1
        if descents.size:
            at = descents[0]
            raise self._error(f"contact_state[{at}]", f"is {state[at]}; it must be ascending")
        contacts: dict[str, Array] = {"state": state}
        for name, shape in {**CONTACT, **_OPTIONAL_CONTACT}.items():
            key = f"contact_{name}"
            if key in self._arrays and name in _BELOW:
                below = _BELOW[name] or self._model.ngeom
                contacts[name] = self._read_indices(key, shape, below, len(state))
            elif key in self._arrays:
                contacts[name] = self._read(key, shape, len(state))
                self._check_finite(key, contacts[name], state)
            elif name in CONTACT:
                raise self._error(key, "is missing; contact_state needs it")
            elif getattr(self._model, f"flg_{name}", False):
                raise self._error(key, "is missing; geoms of the model have one")
        self._check_contacts(contacts)
        for key in _ADDRESS:
            if key in self._arrays:
                shape = np.asarray(self._arrays[key]).shape[1:]
                rows = self._read(key, shape, len(state))
                contacts["efc_address"] = rows.reshape(len(state), int(np.prod(shape)))
        return contacts

    def _read_indices(
        self, name: str, shape: tuple[int, ...], below: int, count: int | None = None
    ) -> Array:
        """Whole numbers that are at least 0 and less than a bound."""
        values = self._read(name, shape, count)
        wrong = np.argwhere(~((values >= 0) & (values < below) & (values == np.floor(values))))
        if wrong.size:
            at = int(wrong[0][0])
            raise self._error(
                f"{name}[{at}]", f"is {values[at]}; it must be whole, at least 0 and below {below}"
            )
        return values.astype(np.int64)

    def _check_contacts(self, contacts: dict[str, Array]) -> None:
        dim, frame, friction = contacts["dim"], contacts["frame"], contacts["friction"]
        products = frame @ frame.transpose(0, 2, 1) if len(frame) else frame
        checks = {
            "dim": (~np.isin(dim, _DIMENSIONS), "must be 1, 3, 4 or 6"),
            "frame": (
                (np.abs(products - np.eye(3)) > _FRAME_ERROR).any((1, 2)),
                "must have orthonormal rows",
            ),
            "friction": ((friction < 0).any(1), "must not be negative"),
        }
        for name, (wrong, rule) in checks.items():
            found = [i for i in np.flatnonzero(wrong) if self._valid[contacts["state"][i]]]
            if found:
                at, state = found[0], int(contacts["state"][found[0]])
                raise self._error(
                    f"contact_{name}[{at}]",
                    f"{rule} (state {state}, world {self._world[state]})",
                )


def _neighbors(world: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The state before and after each in its world; -1: none."""
    previous, following = np.full(len(world), -1), np.full(len(world), -1)
    order = np.argsort(world, kind="stable")
    same = world[order[1:]] == world[order[:-1]]
    previous[order[1:][same]] = order[:-1][same]
    following[order[:-1][same]] = order[1:][same]
    return previous, following
