"""Options and requests for derivatives as structs of the C library."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any

from sap_islands._library.c_memory import read
from sap_islands._library.c_structs import ProblemBlock
from sap_islands._library.declarations import array_names, new
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

_DEFAULTS = Options()
_CHOICES: dict[str, Any] = {
    "newton": NewtonMethod,
    "interior_point": InteriorPoint,
    "priority": Priority,
}


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
        self._struct = new("sap_connect_options")
        for name, value in values.items():
            if isinstance(value, float):
                self._struct.point(name, value)
            else:
                setattr(self._struct, name, value)
        self.address = ctypes.addressof(self._struct)


class OptionsBlock:
    """Options as a struct.

    Attributes:
        address: Of the sap_options.
    """

    def __init__(self, options: Options) -> None:
        struct = _struct_of("sap_options", "options", options)
        if options.coulomb is not None:
            coulomb = _struct_of("sap_coulomb_friction", "options.coulomb", options.coulomb)
            struct.point("coulomb", coulomb)
        if options.rest is not None:
            struct.point("rest", _struct_of("sap_rest", "options.rest", options.rest))
        struct.one_island = options.islands is False
        for name in _CHOICES:
            setattr(struct, name, int(getattr(options, name) or 0))
        paths = [name.encode() for name in options.response_mask]
        texts = (ctypes.c_char_p * len(paths))(*paths)
        struct.num_response_mask, struct.response_mask = len(paths), ctypes.addressof(texts)
        self._kept = (struct, paths, texts)
        self.address = ctypes.addressof(struct)


@functools.lru_cache(maxsize=256)
def _block(options: Options) -> OptionsBlock:
    return OptionsBlock(options)


def options_at(address: int) -> Options:
    """The options of a sap_options of the library."""
    struct = read("sap_options", address)
    count = struct.num_response_mask
    texts = (ctypes.c_char_p * count).from_address(struct.response_mask) if count else ()
    coulomb = struct.coulomb and read("sap_coulomb_friction", struct.coulomb)
    rest = struct.rest and read("sap_rest", struct.rest)
    return Options(
        **_numbers(struct),
        **{name: choice(getattr(struct, name)) for name, choice in _CHOICES.items()},
        islands=False if struct.one_island else None,
        response_mask=tuple(text.decode() for text in texts),
        coulomb=CoulombFriction(**_numbers(coulomb)) if coulomb else None,
        rest=Rest(**_numbers(rest)) if rest else None,
    )


def options_block(options: Options | None) -> OptionsBlock:
    """The options, which most calls repeat.

    Raises:
        InvalidArgument: They are something else.
    """
    if options is not None and not isinstance(options, Options):
        raise InvalidArgument(f"options is {options!r}; Options is needed", "options")
    return _block(options or _DEFAULTS)


def _struct_of(name: str, field: str, options: Any) -> Any:
    """The struct, with the numbers that are given in attributes with the names of its members."""
    struct = new(name)
    for member, number in struct.pointees.items():
        option = member.removesuffix("_s")
        value = getattr(options, option, None)  # the library may be newer
        if value is None:
            continue
        if number is ctypes.c_uint32 and not 0 <= value < 1 << 32:
            path = f"{field}.{option}"
            raise InvalidArgument(f"{path} is {value}; it must be in [0, 2^32)", path)
        struct.point(member, value)
    return struct


def _numbers(struct: Any) -> dict[str, Any]:
    """The numbers that `_struct_of` sets."""
    return {member.removesuffix("_s"): struct.number(member) for member in struct.pointees}


def addresses(handles: Sequence[int | None]) -> Any:
    """An array of pointers."""
    return (ctypes.c_void_p * len(handles))(*handles)


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
        self._kept = (options, block, tangents, cotangents, texts, lists)
        self._struct = new(
            "sap_differentiation",
            problem=block.address,
            options=options.address,
            num_cotangents=len(cotangents),
            cotangents=ctypes.addressof(lists[0]),
            num_tangents=len(tangents),
            tangents=ctypes.addressof(lists[1]),
            num_wanted=len(texts),
            wanted=ctypes.addressof(lists[2]),
            hold_delassus=int(request.hold_delassus),
        )
        self._struct.set_array("velocity", request.velocity)
        self.address = ctypes.addressof(self._struct)


def _cotangent(cotangent: Cotangent) -> Any:
    struct = new("sap_cotangent", cost=cotangent.cost)
    for name in array_names("sap_cotangent"):
        struct.set_array(name, getattr(cotangent, name))
    return struct
