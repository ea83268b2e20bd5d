"""Python runs this when a program of `sap-islands run --server` starts; PYTHONPATH begins here.

It replaces `mujoco._rollout.Rollout` and `mujoco._batch.Batch` when these are imported, and then
runs the module of this name that Python would have run without it. Nothing else of this package is
imported before the program calls them.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGES = os.path.dirname(os.path.dirname(_HERE))


class _Finder:
    """Finds the module, and replaces its class once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _REPLACEMENTS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            # A loader by its methods; typeshed wants the abstract class.
            spec.loader = _Loader(spec.loader, *_REPLACEMENTS[name])  # type: ignore[assignment]
        return spec


class _Loader:
    def __init__(self, own: Any, name: str, replacement: Any) -> None:
        self._own, self._name, self._replacement = own, name, replacement

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._own.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        setattr(module, self._name, self._replacement(getattr(module, self._name)))


def _rollout(own: Any) -> Any:
    """A class that takes whole rollouts to servers, or to the own class of the module."""

    class Rollout:
        def __init__(self, **arguments: Any) -> None:
            self._own = own(**arguments)
            self._threads = int(arguments.get("nthread") or 0)

        def rollout(self, *arguments: Any) -> Any:
            served = _served()
            if served is None:
                return self._own.rollout(*arguments)
            return served.rollout(self._own.rollout, self._threads, arguments)

    return Rollout


def _batch(own: Any) -> Any:
    """A function that makes a batch whose steps may go to servers."""

    def make(*arguments: Any) -> Any:
        if _served() is None:
            return own(*arguments)
        from sap_islands.mujoco import served_batches

        return served_batches.ServedBatch(own, *arguments)

    return make


_REPLACEMENTS = {"mujoco._rollout": ("Rollout", _rollout), "mujoco._batch": ("Batch", _batch)}


def _served() -> Any:
    """The rollouts of this process; None: the package cannot be imported here."""
    try:
        from sap_islands.mujoco import served_rollouts
    except ImportError:
        if _PACKAGES in sys.path:
            return None
        sys.path.append(_PACKAGES)
        return _served()
    return served_rollouts.of_process()


def _run_next() -> None:
    """Runs the module that this one hides."""
    path = [each for each in sys.path if os.path.abspath(each or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


if os.environ.get("SAP_RUN_SERVER"):
    sys.meta_path.insert(0, _Finder())
_run_next()
