"""The libraries that take the place of a simulator's constraint solver in unchanged programs.

`sap-islands run` preloads one into a program. It counts what becomes of the steps in a file that
all processes of the program share. `client/mujoco/preload/replacement.h` documents its functions,
which the library of DART has as well.
"""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from sap_islands.binaries import find_replacement
from sap_islands.errors import InvalidArgument, Unavailable

When: TypeAlias = Literal["faster", "always"]
Engine: TypeAlias = Literal["mujoco", "dart"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

# Outcome of the rollouts of a program that servers took; others are why MuJoCo did.
ROLLOUTS_SERVED = "at servers"

_SOLVED = 0  # number of this outcome
# Begins the PYTHONPATH of programs whose rollouts may go to servers.
STARTUP = Path(__file__).with_name("startup")
_HEAD = 2  # numbers before those of the outcomes


class StepCounts(NamedTuple):
    """Outcomes of the steps of a program.

    Attributes:
        engine: The simulator.
        version: Its version; None: no step was seen.
        steps: Evaluations of its constraints: one per step, four with RK4. MuJoCo's compiler steps
            a model once.
        solved: Those that this solver took.
        islands: Islands in these.
        passed_on: Those that the simulator's own solver took, by the reason.
    """

    engine: str
    version: str | None
    steps: int
    solved: int
    islands: int
    passed_on: dict[str, int]


class Replacement:
    """The library of an engine, with the counts of steps since this object was made.

    The file of the counts exists until `close`.
    """

    def __init__(self, engine: Engine) -> None:
        """Finds the library.

        Raises:
            Unavailable: It was not found.
        """
        if engine not in ENGINES:
            raise InvalidArgument(f"engine is {engine!r}; it must be of {list(ENGINES)}", "engine")
        self.engine = engine
        self.path = find_replacement(engine)
        self._outcomes = _load(self.path).sap_replacement_outcomes().decode().splitlines()
        with tempfile.NamedTemporaryFile(prefix="sap-islands-", delete=False) as file:
            file.write(bytes(8 * (_HEAD + 2 * len(self._outcomes))))
        self._report = file.name

    def environment(self, when: When) -> dict[str, str]:
        """Variables that a program needs in addition to those of this process."""
        preloaded = [self.path, *os.environ.get("LD_PRELOAD", "").split()]
        return {
            "LD_PRELOAD": " ".join(preloaded),
            "SAP_RUN_WHEN": check_when(when),
            "SAP_RUN_REPORT": self._report,
        }

    def start(self, when: When) -> None:
        """Replaces the solver in this process, which has loaded the simulator.

        Raises:
            Unavailable: The simulator is not loaded, or its memory cannot be written to.
        """
        self._start(check_when(when), self._report)

    def stop(self) -> None:
        """Leaves all steps of this process to the simulator's own solver again."""
        self._start("never", None)

    def read(self) -> StepCounts:
        """The counts up to now."""
        numbers = np.fromfile(self._report, np.int64).tolist()
        version, islands, *steps = numbers[: _HEAD + len(self._outcomes)]
        named = dict(zip(self._outcomes, steps, strict=True))
        solved = named.pop(self._outcomes[_SOLVED])
        passed_on = {reason: count for reason, count in named.items() if count}
        text = f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"
        return StepCounts(
            self.engine, text if version else None, sum(steps), solved, islands, passed_on
        )

    def close(self) -> None:
        """Deletes the file of the counts. Processes that have it open go on."""
        if os.path.exists(self._report):
            os.unlink(self._report)

    def __enter__(self) -> Replacement:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, when: str, report: str | None) -> None:
        path = None if report is None else report.encode()
        if _load(self.path).sap_replacement_start(when.encode(), path) != 0:
            raise Unavailable(f"the solver of {self.engine} cannot be replaced in this process")


class ServedRollouts:
    """The counts of the rollouts of a program that may go to servers, by outcome.

    The file of the counts exists until `close`.
    """

    def __init__(self, address: str) -> None:
        """Makes the file; `address` is that of the servers."""
        self._address = address
        with tempfile.NamedTemporaryFile(prefix="sap-islands-", delete=False) as file:
            self._report = file.name

    def environment(self) -> dict[str, str]:
        """Variables that a program needs in addition to those of this process."""
        before = os.environ.get("PYTHONPATH")
        return {
            "PYTHONPATH": os.pathsep.join([str(STARTUP), *([before] if before else [])]),
            "SAP_RUN_SERVER": self._address,
            "SAP_RUN_ROLLOUTS": self._report,
        }

    def read(self) -> dict[str, dict[str, int]]:
        """Calls and steps up to now, by outcome."""
        counts: dict[str, dict[str, int]] = {}
        with open(self._report) as file:
            for line in file:
                outcome, _, steps = line.rstrip("\n").rpartition("\t")
                count = counts.setdefault(outcome, {"calls": 0, "steps": 0})
                count["calls"] += 1
                count["steps"] += int(steps)
        return counts

    def close(self) -> None:
        """Deletes the file. Processes that go on count no more."""
        if os.path.exists(self._report):
            os.unlink(self._report)


def check_when(when: str) -> str:
    """Raises InvalidArgument unless it is one of `When`."""
    if when not in get_args(When):
        raise InvalidArgument(f"when is {when!r}; it must be 'faster' or 'always'", "when")
    return when


@functools.cache
def _load(path: str) -> Any:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise Unavailable(f"{path} cannot be loaded: {error}") from error
    library.sap_replacement_outcomes.restype = ctypes.c_char_p
    library.sap_replacement_start.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
    library.sap_replacement_start.restype = ctypes.c_int32
    return library
