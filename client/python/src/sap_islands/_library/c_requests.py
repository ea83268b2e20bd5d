"""Options and requests for derivatives as structs of the C library."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any

from sap_islands._library.c_memory import Array, read
from sap_islands._library.c_structs import ProblemBlock
from sap_islands.derivatives import Cotangent, DifferentiateRequest
from sap_islands.errors import InvalidArgument
from sap_islands.options import (
    CoulombFriction,
    InteriorPoint,
    NewtonMethod,
    Options,
    Priority,
    Rest,
    tuple_of_names,
)

_pointer = ctypes.c_void_p
_DEFAULTS = Options()


class _CoulombStruct(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("max_rounds", ctypes.POINTER(ctypes.c_uint32)),
        ("tolerance", ctypes.POINTER(ctypes.c_double)),
    )


class _RestStruct(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("horizon", ctypes.POINTER(ctypes.c_double)),
    )


class OptionsStruct(ctypes.Structure):
    """A sap_options."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("relative_tolerance", ctypes.POINTER(ctypes.c_double)),
        ("absolute_speed_tolerance", ctypes.POINTER(ctypes.c_double)),
        ("max_iterations", ctypes.POINTER(ctypes.c_uint32)),
        ("time_budget_s", ctypes.POINTER(ctypes.c_double)),
        ("newton", ctypes.c_int32),
        ("one_island", ctypes.c_int32),
        ("max_memory_bytes", ctypes.c_uint64),
        ("num_response_mask", ctypes.c_int64),
        ("response_mask", ctypes.POINTER(ctypes.c_char_p)),
        ("priority", ctypes.c_int32),
        ("coulomb", ctypes.POINTER(_CoulombStruct)),
        ("rest", ctypes.POINTER(_RestStruct)),
        ("interior_point", ctypes.c_int32),
    )


class _ConnectOptions(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("threads", ctypes.c_int32),
        ("low_latency", ctypes.c_int32),
        ("connect_timeout_s", ctypes.POINTER(ctypes.c_double)),
        ("reconnect_within_s", ctypes.POINTER(ctypes.c_double)),
        ("allow_mixed_servers", ctypes.c_int32),
        ("tls", ctypes.c_int32),
        ("server_ca", ctypes.c_char_p),
        ("server_ca_file", ctypes.c_char_p),
        ("certificate", ctypes.c_char_p),
        ("certificate_file", ctypes.c_char_p),
        ("key", ctypes.c_char_p),
        ("key_file", ctypes.c_char_p),
        ("server_name", ctypes.c_char_p),
        ("token", ctypes.c_char_p),
        ("token_file", ctypes.c_char_p),
        ("in_order", ctypes.c_int32),
        ("scene_connections", ctypes.c_int32),
    )


class _Cotangent(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("velocity", Array),
        ("impulse", Array),
        ("contact_velocity", Array),
        ("row_impulse", Array),
        ("row_velocity", Array),
        ("angular_impulse", Array),
        ("cost", ctypes.c_double),
    )


class _Differentiation(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("problem", _pointer),
        ("options", _pointer),
        ("velocity", Array),
        ("num_cotangents", ctypes.c_int64),
        ("cotangents", _pointer),
        ("num_tangents", ctypes.c_int64),
        ("tangents", _pointer),
        ("num_wanted", ctypes.c_int64),
        ("wanted", _pointer),
        ("hold_delassus", ctypes.c_int32),
        ("padding", ctypes.c_int32),
    )


def check_reconnect_within(seconds: float) -> float:
    """The argument `reconnect_within`.

    Raises:
        InvalidArgument: It is negative or not finite.
    """
    if not 0 <= seconds < math.inf:
        message = f"reconnect_within is {seconds}; it must be finite and >= 0"
        raise InvalidArgument(message, "reconnect_within")
    return float(seconds)


class ConnectSettings:
    """A sap_connect_options, with all that it points to.

    Attributes:
        address: Of the sap_connect_options.
    """

    def __init__(self, **values: int | float | bytes | None) -> None:
        """Sets the fields that are given, by their names in the struct."""
        self._struct = _ConnectOptions(ctypes.sizeof(_ConnectOptions))
        for name, value in values.items():
            if isinstance(value, float):
                getattr(self._struct, name).contents = ctypes.c_double(value)
            else:
                setattr(self._struct, name, value)
        self.address = ctypes.addressof(self._struct)


class OptionsBlock:
    """Options as a struct.

    Attributes:
        address: Of the sap_options.
    """

    def __init__(self, options: Options) -> None:
        struct = OptionsStruct(ctypes.sizeof(OptionsStruct))
        if options.relative_tolerance is not None:
            struct.relative_tolerance.contents = ctypes.c_double(options.relative_tolerance)
        if options.absolute_speed_tolerance is not None:
            speed = ctypes.c_double(options.absolute_speed_tolerance)
            struct.absolute_speed_tolerance.contents = speed
        if options.max_iterations is not None:
            most = _count("options.max_iterations", options.max_iterations)
            struct.max_iterations.contents = most
        if options.time_budget is not None:
            struct.time_budget_s.contents = ctypes.c_double(options.time_budget)
        if options.coulomb is not None:
            struct.coulomb.contents = _coulomb_struct(options.coulomb)
        if options.rest is not None:
            struct.rest.contents = _rest_struct(options.rest)
        struct.newton = int(options.newton or 0)
        struct.one_island = int(options.islands is False)
        paths = [name.encode() for name in options.response_mask]
        struct.num_response_mask = len(paths)
        struct.response_mask = (ctypes.c_char_p * len(paths))(*paths)
        struct.priority = int(options.priority or 0)
        struct.interior_point = int(options.interior_point or 0)
        self._kept = (struct, paths)
        self.address = ctypes.addressof(struct)


@functools.lru_cache(maxsize=256)
def _block(options: Options) -> OptionsBlock:
    return OptionsBlock(options)


def options_at(address: int) -> Options:
    """The options of a sap_options of the library."""
    struct = read(OptionsStruct, address)
    numbers = {
        name: value[0] if value else None
        for name, value in (
            ("relative_tolerance", struct.relative_tolerance),
            ("absolute_speed_tolerance", struct.absolute_speed_tolerance),
            ("max_iterations", struct.max_iterations),
            ("time_budget", struct.time_budget_s),
        )
    }
    return Options(
        **numbers,
        islands=False if struct.one_island else None,
        newton=NewtonMethod(struct.newton),
        response_mask=tuple(
            struct.response_mask[i].decode() for i in range(struct.num_response_mask)
        ),
        priority=Priority(struct.priority),
        coulomb=_coulomb_at(struct.coulomb.contents) if struct.coulomb else None,
        rest=_rest_at(struct.rest.contents) if struct.rest else None,
        interior_point=InteriorPoint(struct.interior_point),
    )


def _coulomb_struct(coulomb: CoulombFriction) -> _CoulombStruct:
    struct = _CoulombStruct(ctypes.sizeof(_CoulombStruct))
    if coulomb.max_rounds is not None:
        struct.max_rounds.contents = _count("options.coulomb.max_rounds", coulomb.max_rounds)
    if coulomb.tolerance is not None:
        struct.tolerance.contents = ctypes.c_double(coulomb.tolerance)
    return struct


def _coulomb_at(struct: _CoulombStruct) -> CoulombFriction:
    return CoulombFriction(
        struct.max_rounds[0] if struct.max_rounds else None,
        struct.tolerance[0] if struct.tolerance else None,
    )


def _rest_struct(rest: Rest) -> _RestStruct:
    struct = _RestStruct(ctypes.sizeof(_RestStruct))
    if rest.horizon is not None:
        struct.horizon.contents = ctypes.c_double(rest.horizon)
    return struct


def _rest_at(struct: _RestStruct) -> Rest:
    return Rest(struct.horizon[0] if struct.horizon else None)


def options_block(options: Options | None) -> OptionsBlock:
    """The options, which most calls repeat.

    Raises:
        InvalidArgument: They are something else.
    """
    if options is not None and not isinstance(options, Options):
        raise InvalidArgument(f"options is {options!r}; Options is needed", "options")
    return _block(options or _DEFAULTS)


def _count(field: str, number: int) -> ctypes.c_uint32:
    if not 0 <= number < 1 << 32:
        raise InvalidArgument(f"{field} is {number}; it must be in [0, 2^32)", field)
    return ctypes.c_uint32(number)


def addresses(handles: Sequence[int | None]) -> Any:
    """An array of pointers."""
    return (_pointer * len(handles))(*handles)


class Request:
    """A sap_differentiation, with all that it points to.

    Attributes:
        address: Of the sap_differentiation.
    """

    def __init__(
        self, request: DifferentiateRequest, options: OptionsBlock, block: ProblemBlock
    ) -> None:
        block.fill(request.problem)
        tangents = [ProblemBlock() for _ in request.tangents]
        for tangent, direction in zip(tangents, request.tangents, strict=True):
            tangent.fill(direction, request.problem)
        cotangents = [_cotangent(cotangent) for cotangent in request.cotangents]
        texts = [path.encode() for path in tuple_of_names(request.wanted, "wanted")]
        lists = (
            addresses([ctypes.addressof(cotangent) for cotangent in cotangents]),
            addresses([tangent.address for tangent in tangents]),
            (ctypes.c_char_p * len(texts))(*texts),
        )
        # The arrays themselves: attributes may be assigned while the structs are read.
        arrays = [request.velocity, *(list(vars(given).values()) for given in request.cotangents)]
        self._kept = (arrays, options, block, tangents, cotangents, texts, lists)
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


def _array(array: Any) -> Array:
    return Array(array.ctypes.data, array.size)


def _cotangent(cotangent: Cotangent) -> _Cotangent:
    arrays = (_array(getattr(cotangent, name)) for name, _ in _Cotangent._fields_[1:-1])
    return _Cotangent(ctypes.sizeof(_Cotangent), *arrays, cotangent.cost)
