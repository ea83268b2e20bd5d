"""Options and requests for derivatives as structs of the C library."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from sap_islands._library.c_answer import ALL_FIELDS
from sap_islands._library.c_structs import ProblemBlock
from sap_islands.derivatives import Cotangent, DifferentiateRequest
from sap_islands.errors import InvalidArgument
from sap_islands.options import Options, serialize

_pointer = ctypes.c_void_p
_DEFAULTS = Options()


class _Options(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("relative_tolerance", ctypes.POINTER(ctypes.c_double)),
        ("absolute_speed_tolerance", ctypes.POINTER(ctypes.c_double)),
        ("max_iterations", ctypes.POINTER(ctypes.c_uint32)),
        ("time_budget_s", ctypes.POINTER(ctypes.c_double)),
        ("newton", ctypes.c_int32),
        ("one_island", ctypes.c_int32),
        ("max_memory_bytes", ctypes.c_uint64),
    )


class ConnectOptions(ctypes.Structure):
    """A sap_connect_options as far as it is used here."""

    _fields_ = (("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32))


class CallSettings(ctypes.Structure):
    """A sap_call as far as it is used here."""

    _fields_ = (("struct_size", ctypes.c_size_t), ("deadline_s", _pointer), ("stop", _pointer))


class _Array(ctypes.Structure):
    _fields_ = (("data", _pointer), ("length", ctypes.c_int64))


class _Cotangent(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("velocity", _Array),
        ("impulse", _Array),
        ("contact_velocity", _Array),
        ("row_impulse", _Array),
        ("row_velocity", _Array),
        ("angular_impulse", _Array),
        ("cost", ctypes.c_double),
    )


class _Differentiation(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("problem", _pointer),
        ("options", _pointer),
        ("velocity", _Array),
        ("num_cotangents", ctypes.c_int64),
        ("cotangents", _pointer),
        ("num_tangents", ctypes.c_int64),
        ("tangents", _pointer),
        ("num_wanted", ctypes.c_int64),
        ("wanted", _pointer),
        ("hold_delassus", ctypes.c_int32),
        ("padding", ctypes.c_int32),
    )


class OptionsBlock:
    """Options as a struct, and the mask of the solution.

    Attributes:
        address: Of the sap_options.
        mask: The fields of the solution to return.
    """

    def __init__(self, options: Options, longest: float | None) -> None:
        serialize(options)  # refuses numbers that the message cannot hold
        self.mask = _mask(options)
        budget = options.time_budget
        if longest is not None:
            budget = longest if budget is None else min(budget, longest)
        struct = _Options(ctypes.sizeof(_Options))
        if options.relative_tolerance is not None:
            struct.relative_tolerance.contents = ctypes.c_double(options.relative_tolerance)
        if options.absolute_speed_tolerance is not None:
            speed = ctypes.c_double(options.absolute_speed_tolerance)
            struct.absolute_speed_tolerance.contents = speed
        if options.max_iterations is not None:
            struct.max_iterations.contents = ctypes.c_uint32(options.max_iterations)
        if budget is not None:
            struct.time_budget_s.contents = ctypes.c_double(budget)
        struct.newton = int(options.newton)
        struct.one_island = int(options.islands is False)
        self._struct = struct
        self.address = ctypes.addressof(struct)


@functools.lru_cache(maxsize=256)
def _unlimited(options: Options) -> OptionsBlock:
    return OptionsBlock(options, None)


def options_block(options: Options | None, longest: float | None = None) -> OptionsBlock:
    """The options, with at most `longest` seconds."""
    options = options or _DEFAULTS
    return _unlimited(options) if longest is None else OptionsBlock(options, longest)


def _mask(options: Options) -> frozenset[str]:
    for i, name in enumerate(options.response_mask):
        if name not in ALL_FIELDS:
            field = f"options.response_mask.paths[{i}]"
            message = f"{field} is '{name[:64]}'; it must be the name of a field of ContactSolution"
            raise InvalidArgument(message, field)
    return frozenset(options.response_mask) or ALL_FIELDS


def addresses(handles: Sequence[int | None]) -> Any:
    """An array of pointers."""
    return (_pointer * len(handles))(*handles)


class Request:
    """A sap_differentiation, with all that it points to.

    Attributes:
        address: Of the sap_differentiation.
        mask: The fields of the solution to return.
    """

    def __init__(
        self, request: DifferentiateRequest, options: OptionsBlock, block: ProblemBlock
    ) -> None:
        block.fill(request.problem)
        tangents = [ProblemBlock() for _ in request.tangents]
        for tangent, direction in zip(tangents, request.tangents, strict=True):
            tangent.fill(direction, request.problem)
        cotangents = [_cotangent(cotangent) for cotangent in request.cotangents]
        texts = [path.encode() for path in request.wanted]
        lists = (
            addresses([ctypes.addressof(cotangent) for cotangent in cotangents]),
            addresses([tangent.address for tangent in tangents]),
            (ctypes.c_char_p * len(texts))(*texts),
        )
        self.mask = options.mask
        self._kept = (request, options, block, tangents, cotangents, texts, lists)
        self._struct = _Differentiation(
            ctypes.sizeof(_Differentiation),
            block.address,
            options.address,
            _array(request.velocity),
            len(cotangents),
            ctypes.addressof(lists[0]),
            len(tangents),
            ctypes.addressof(lists[1]),
            len(texts),
            ctypes.addressof(lists[2]),
            int(request.hold_delassus),
        )
        self.address = ctypes.addressof(self._struct)


def _array(array: Any) -> _Array:
    return _Array(array.ctypes.data, array.size)


def _cotangent(cotangent: Cotangent) -> _Cotangent:
    arrays = (_array(getattr(cotangent, name)) for name, _ in _Cotangent._fields_[1:-1])
    return _Cotangent(ctypes.sizeof(_Cotangent), *arrays, cotangent.cost)
