"""Encodes and decodes protobuf messages of large arrays without a Python object per number.

protobuf's Python API converts a `repeated double` number by number, which takes longer than
solving a small problem. A packed array on the wire is a tag, a length and the little-endian
numbers. So arrays are written with one copy of their memory and read as views of the message. Tags
are taken from the compiled schema.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from numpy.typing import NDArray

from sap_islands._arrays.array_field import HAS_ARRAYS

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

_PACKED_TYPES = {
    FieldDescriptor.TYPE_DOUBLE: "<f8",
    FieldDescriptor.TYPE_FIXED32: "<u4",
    FieldDescriptor.TYPE_SFIXED32: "<i4",
}
_MAX_REMEMBERED = 4096  # cached sets of array shapes per kind of message
_SMALL_VARINTS = [bytes([value]) for value in range(128)]

Parts = list[Any]  # of a serialized message: bytes and arrays, for bytes.join
Descriptor: TypeAlias = Any  # protobuf's message descriptor, of its Python or its C implementation


def varint(value: int) -> bytes:
    """Encodes a number >= 0 as a varint: base 128, least significant digit first."""
    if value < 128:
        return _SMALL_VARINTS[value]
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Decodes the varint at `position`; returns its value and the position behind it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def length_tag(descriptor: Descriptor, name: str) -> bytes:
    """Tag of a length-delimited field: a message, a string or a packed array."""
    return varint(descriptor.fields_by_name[name].number << 3 | LENGTH)


def wrap(tag: bytes, parts: Parts, size: int) -> tuple[Parts, int]:
    """Makes a message a field of another: puts tag and length first; returns parts and size."""
    header = tag + varint(size)
    return [header, *parts], size + len(header)


class PackedArrays:
    """Encodes a message whose fields are packed arrays, and messages of such arrays."""

    def __init__(
        self,
        descriptor: Descriptor,
        columns: Mapping[str, int],
        groups: Mapping[str, PackedArrays],
    ) -> None:
        """Prepares the tags.

        Args:
            descriptor: Of the message.
            columns: For each array, how many numbers one entry has.
            groups: For each message in the message, its encoder.
        """
        self._fields = [
            (field.name, length_tag(descriptor, field.name)) for field in descriptor.fields
        ]
        self._columns = columns
        self._names = [name for name, _ in self._fields if name in columns]
        self._groups = groups
        self._arrays_of = operator.itemgetter(*self._names)
        self.num_arrays: int = len(self._names) + sum(g.num_arrays for g in groups.values())
        self._no_arrays = (np.empty(0),) * self.num_arrays
        # Cached, since the steps of a simulation repeat the same shapes.
        self._headers: dict[tuple[int | None, tuple[tuple[int, ...], ...]], _Headers] = {}

    def append(self, group: Any, tag: bytes, parts: Parts, count: int | None = None) -> int:
        """Appends the message to `parts` as a field of another; returns its size [bytes].

        Args:
            group: Object with the arrays as attributes, and their `count` of entries.
            tag: Tag of the field.
            parts: List to append to; nothing is appended for an empty message.
            count: Number of entries, of a group that does not know it; None: `group.count`.
        """
        if HAS_ARRAYS not in group.__dict__:
            return 0
        arrays = self._arrays(group)
        shapes = tuple([array.shape for array in arrays])
        headers = self._headers.get((count, shapes))
        if headers is None:
            entries = group.count if count is None else count
            headers = self._make_headers(tag, arrays, 0, entries)
            if len(self._headers) >= _MAX_REMEMBERED:
                self._headers.clear()
            self._headers[count, shapes] = headers
        for header, index, repeat in headers.present:
            parts.append(header)
            parts.append(arrays[index].tobytes() * repeat if repeat else arrays[index])
        return headers.size

    def _arrays(self, group: Any) -> tuple[NDArray[Any], ...]:
        """The arrays of a group, then those of the groups in it; empty ones for an absent group."""
        if group is None:
            return self._no_arrays
        values = group.__dict__
        arrays: tuple[NDArray[Any], ...] = self._arrays_of(values)
        for name, encoder in self._groups.items():
            arrays += encoder._arrays(values[name])
        return arrays

    def _make_headers(
        self, tag: bytes, arrays: tuple[NDArray[Any], ...], first: int, count: int
    ) -> _Headers:
        """Headers of the message whose arrays are arrays[first], arrays[first + 1], ..."""
        present: list[tuple[bytes, int, int]] = []
        size = 0
        index, index_in_group = first, first + len(self._names)
        for name, field_tag in self._fields:
            if name in self._groups:
                encoder = self._groups[name]
                headers = encoder._make_headers(field_tag, arrays, index_in_group, count)
                present += headers.present
                size += headers.size
                index_in_group += encoder.num_arrays
                continue
            array, columns = arrays[index], self._columns[name]
            length = array.nbytes
            repeat = 0
            if array.ndim == 0 or (columns > 1 and array.size == columns):
                length = count * columns * array.itemsize
                repeat = length // array.nbytes
            if length:
                header = field_tag + varint(length)
                present.append((header, index, repeat))
                size += len(header) + length
            index += 1
        if present:
            header = tag + varint(size)
            present[0] = (header + present[0][0], *present[0][1:])
            size += len(header)
        return _Headers(present, size)


class _Headers(NamedTuple):
    """Headers of the arrays of one set of shapes.

    Attributes:
        present: For each array that is not empty: bytes before it, its index, and how often it is
            repeated; 0: it is written as it is.
        size: Size of the field [bytes].
    """

    present: list[tuple[bytes, int, int]]
    size: int


def scan(data: bytes, start: int, end: int) -> list[tuple[int, int, int, int]]:
    """Lists the fields of the message in data[start:end] as (number, wire type, first, last).

    `first` and `last` delimit the content; for a varint `first` is its value.

    Raises:
        ValueError: A wire type is unknown, or the message ends within a field.
        IndexError: The data end within a tag or length.
    """
    fields = []
    position = start
    while position < end:
        tag = data[position]
        position += 1
        if tag > 127:
            tag, position = read_varint(data, position - 1)
        wire_type = tag & 7
        if wire_type == LENGTH:
            length = data[position]
            position += 1
            if length > 127:
                length, position = read_varint(data, position - 1)
            fields.append((tag >> 3, wire_type, position, position + length))
            position += length
        elif wire_type == VARINT:
            value, position = read_varint(data, position)
            fields.append((tag >> 3, wire_type, value, position))
        elif wire_type in (FIXED64, FIXED32):
            width = 8 if wire_type == FIXED64 else 4
            fields.append((tag >> 3, wire_type, position, position + width))
            position += width
        else:
            raise ValueError(f"a message has a field of unknown wire type {wire_type}")
    if position != end:
        raise ValueError("a message ends within a field")
    return fields


def without_fields(data: bytes, start: int, end: int, numbers: Collection[int]) -> bytes:
    """The message in data[start:end] without the fields of these numbers."""
    kept = []
    begin = start
    for number, _, _, last in scan(data, start, end):
        if number not in numbers:
            kept.append(data[begin:last])
        begin = last
    return b"".join(kept)


def array_view(data: bytes, dtype: np.dtype[Any], start: int, end: int) -> NDArray[Any]:
    """The numbers in data[start:end], read-only: a view if they are aligned, otherwise a copy."""
    array: NDArray[Any] = np.frombuffer(data, dtype, (end - start) // dtype.itemsize, start)
    if not array.flags.aligned:
        array = array.copy()
        array.flags.writeable = False
    return array


class ArrayDecoder:
    """Decodes a message of numbers, packed arrays and enumerations; other fields are skipped."""

    def __init__(
        self, descriptor: Descriptor, groups: Mapping[str, ArrayDecoder] | None = None
    ) -> None:
        """Prepares the fields.

        Args:
            descriptor: Of the message.
            groups: For each message in the message that is to be decoded, its decoder.
        """
        self._fields: dict[int, tuple[str, np.dtype[Any] | None]] = {}
        self._empty: dict[str, NDArray[Any]] = {}
        self._groups: dict[int, tuple[str, ArrayDecoder]] = {}
        for field in descriptor.fields:
            if groups and field.name in groups:
                self._groups[field.number] = (field.name, groups[field.name])
                continue
            if field.type in _PACKED_TYPES:
                dtype: np.dtype[Any] | None = np.dtype(_PACKED_TYPES[field.type])
            elif field.type == FieldDescriptor.TYPE_ENUM:
                dtype = None
            else:
                continue
            self._fields[field.number] = (field.name, dtype)
            if field.is_repeated:
                self._empty[field.name] = np.empty(0, dtype or np.dtype("i4"))
                self._empty[field.name].flags.writeable = False

    def decode(self, data: bytes, start: int, end: int) -> dict[str, Any]:
        """Values by name. Absent arrays are empty; absent numbers and messages have no entry."""
        values: dict[str, Any] = dict(self._empty)
        self._decode_into(values, data, start, end)
        return values

    def _decode_into(self, values: dict[str, Any], data: bytes, start: int, end: int) -> None:
        for number, wire_type, first, last in scan(data, start, end):
            if number in self._groups and wire_type == LENGTH:
                name, decoder = self._groups[number]
                decoder._decode_into(
                    values.setdefault(name, dict(decoder._empty)), data, first, last
                )
                continue
            if number not in self._fields:
                continue
            name, dtype = self._fields[number]
            value: Any
            if dtype is None:
                value = _enumerations(data, first, last) if wire_type == LENGTH else [first]
            else:
                value = array_view(data, dtype, first, last)
            if name not in self._empty:
                values[name] = value[-1]
            elif len(values[name]):
                # protobuf allows a packed array to be split into several pieces.
                values[name] = np.concatenate((values[name], value))
            else:
                values[name] = np.asarray(value, values[name].dtype)


def _enumerations(data: bytes, start: int, end: int) -> NDArray[np.int32]:
    """Decodes packed enumerations, which are varints; values below 128 take one byte each."""
    codes = np.frombuffer(data, np.uint8, end - start, start)
    if codes.size and codes.max() > 127:
        values = []
        position = start
        while position < end:
            value, position = read_varint(data, position)
            values.append(value)
        return np.array(values, np.uint64).astype(np.int32)  # a negative one has 64 bits
    return codes.astype(np.int32)
