"""Random protobuf messages, with which the hand-written encoding and decoding are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from google.protobuf import message_factory


def random_message(descriptor: Any, rng: np.random.Generator, omitted: float) -> Any:
    """A message in which each field is absent with the probability `omitted`."""
    message = message_factory.GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if rng.random() < omitted:
            continue
        if field.message_type is not None:
            part = random_message(field.message_type, rng, omitted)
            if part.ByteSize():
                getattr(message, field.name).CopyFrom(part)
        elif not field.is_repeated:
            setattr(message, field.name, rng.integers(1, 3) if field.enum_type else rng.random())
        else:
            getattr(message, field.name).extend(_random_numbers(field, rng).tolist())
    return message


def _random_numbers(field: Any, rng: np.random.Generator) -> Any:
    """Numbers, as many as any array of rows has in one piece: 12 have 1, 2, 3 or 6 columns."""
    if field.enum_type is not None:
        return rng.integers(0, 4, 12)
    if field.type == field.TYPE_DOUBLE:
        return np.append(rng.standard_normal(11), np.inf)
    least = 0 if field.type == field.TYPE_FIXED32 else -(2**31)
    return rng.integers(least, 2**31, 12)
