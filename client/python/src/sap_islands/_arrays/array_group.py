"""Base class of the messages that consist of packed arrays."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar, overload

from numpy.typing import NDArray

from sap_islands._arrays.array_field import HAS_ARRAYS, ArrayField
from sap_islands.errors import InvalidArgument

GroupT = TypeVar("GroupT", bound="ArrayGroup")


class GroupField(Generic[GroupT]):
    """A group within a group, with as many entries; None, the default, if it is absent."""

    def __init__(self, kind: type[GroupT]) -> None:
        self.kind = kind
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Any: ...
    @overload
    def __get__(self, instance: object, owner: type) -> GroupT | None: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        """The group; read on the class, the default that `dataclass` uses: None."""
        return None if instance is None else instance.__dict__[self.name]

    def __set__(self, instance: object, value: GroupT | None) -> None:
        """Stores the group.

        Raises:
            InvalidArgument: The value is of another type.
        """
        if value is not None:
            if not isinstance(value, self.kind):
                found, wanted = type(value).__name__, self.kind.__name__
                message = f"{self.name} has type {found}; {wanted} or None is needed"
                raise InvalidArgument(message, self.name)
            instance.__dict__[HAS_ARRAYS] = True
        instance.__dict__[self.name] = value


class ArrayGroup:
    """A message that consists of arrays with one entry per tree, body, contact or row.

    A subclass declares one `ArrayField` per array of its message, and one `GroupField` per message
    in it, under the same names.
    """

    FIELD: ClassVar[str]
    _fields: ClassVar[dict[str, ArrayField[Any]]]
    _none: ClassVar[dict[str, NDArray[Any] | None]]
    _groups: ClassVar[dict[str, type[ArrayGroup]]]

    def __init_subclass__(cls) -> None:
        cls._fields = {f.name: f for f in vars(cls).values() if isinstance(f, ArrayField)}
        cls._groups = {f.name: f.kind for f in vars(cls).values() if isinstance(f, GroupField)}
        cls._none = {name: f.empty for name, f in cls._fields.items()}
        cls._none.update(dict.fromkeys(cls._groups))

    @classmethod
    def from_wire_arrays(cls: type[GroupT], **arrays: NDArray[Any] | ArrayGroup) -> GroupT:
        """Makes a group without conversion: arrays are contiguous, of the wire's data types."""
        group = cls.__new__(cls)
        group.__dict__ = {**cls._none, **arrays, HAS_ARRAYS: True}
        return group

    @classmethod
    def none(cls: type[GroupT]) -> GroupT:
        """Makes a group without entries."""
        group = cls.__new__(cls)
        group.__dict__ = cls._none.copy()
        return group

    @classmethod
    def of_values(cls: type[GroupT], values: dict[str, Any]) -> GroupT:
        """Makes a group of flat arrays by name, and of such dicts for the groups in it."""
        for name, field in cls._fields.items():
            if field.columns > 1 and len(values[name]) % field.columns == 0:
                values[name] = values[name].reshape(-1, field.columns)
        for name, kind in cls._groups.items():
            if name in values:
                values[name] = kind.of_values(values[name])
        return cls(**values)

    @property
    def count(self) -> int:
        """Number of entries."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        sizes = {name: self.__dict__[name].size for name in self._fields}
        given = [f"{name}[{size}]" for name, size in sizes.items() if size]
        given += [repr(self.__dict__[name]) for name in self._groups if self.__dict__[name]]
        return f"{type(self).__name__}({', '.join(given)})"
