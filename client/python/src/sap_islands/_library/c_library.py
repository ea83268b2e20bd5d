"""The functions of the C libraries, libsap_islands.so and libsap_islands_client.so.

Each is loaded at the first use, once per process. `sap_islands.h` documents the functions; ctypes
releases the interpreter's lock while they run.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from sap_islands._library.declarations import declare, struct_type
from sap_islands.errors import Unavailable

ABI_VERSION = 0

# A contiguous, writable array as an argument, in a fifth of the time of `array.ctypes`.
pointer_to: Callable[[Any], Any] = (ctypes.c_char * 0).from_buffer

_pointer, _int, _long = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64

_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "sap_abi_version": (_int, ()),
    "sap_connect": (_int, (_pointer,) * 5),
    "sap_client_free": (None, (_pointer,)),
    "sap_info": (_int, (_pointer,) * 3),
    "sap_answer_new": (_pointer, ()),
    "sap_answer_free": (None, (_pointer,)),
    "sap_answer_error": (_pointer, (_pointer,)),
    "sap_answer_solution": (_pointer, (_pointer,)),
    "sap_answer_derivatives": (_pointer, (_pointer,)),
    "sap_answer_info": (_pointer, (_pointer,)),
    "sap_answer_problem": (_pointer, (_pointer,)),
    "sap_answer_record": (_pointer, (_pointer,)),
    "sap_answer_step_id": (ctypes.c_uint64, (_pointer,)),
    "sap_answer_await": (_int, (_pointer, _pointer)),
    "sap_stop_new": (_pointer, ()),
    "sap_stop_free": (None, (_pointer,)),
    "sap_stop_request": (None, (_pointer,)),
    "sap_notify_event": (None, (_pointer,)),
    "sap_solve": (_int, (_pointer,) * 5),
    "sap_solve_batch": (_int, (_pointer, _long, *(_pointer,) * 4)),
    "sap_session_open": (_int, (_pointer,) * 5),
    "sap_session_free": (None, (_pointer,)),
    "sap_batch_begin": (_int, (_pointer, _long, *(_pointer,) * 5)),
    "sap_batch_next": (_long, (_pointer, _pointer)),
    "sap_batch_free": (None, (_pointer,)),
    "sap_session_step": (_int, (_pointer,) * 5),
    "sap_session_send": (_int, (_pointer,) * 5),
    "sap_session_await_open": (_int, (_pointer,) * 2),
    "sap_session_await_outcome": (_int, (_pointer,) * 2),
    "sap_session_await_room": (_int, (_pointer,) * 2),
    "sap_session_take": (_int, (_pointer,) * 3),
    "sap_session_notify": (_int, (_pointer,) * 4),
    "sap_session_withdraw": (_int, (_pointer, ctypes.c_uint64, _pointer)),
    "sap_session_reset": (_int, (_pointer,) * 2),
    "sap_session_in_flight": (_int, (_pointer,)),
    "sap_session_is_open": (_int, (_pointer,)),
    "sap_differentiate": (_int, (_pointer,) * 4),
    "sap_differentiate_batch": (_int, (_pointer, _long, *(_pointer,) * 4)),
    "sap_format_problem": (_int, (_pointer, _int, _pointer)),
    "sap_format_solution": (_int, (_pointer, _int, _pointer)),
    "sap_save_problem": (_int, (_pointer, ctypes.c_char_p, _pointer)),
    "sap_load_problem": (_int, (ctypes.c_char_p, _pointer)),
    "sap_recording_open": (_int, (ctypes.c_char_p, _pointer, _pointer)),
    "sap_recording_create": (_int, (ctypes.c_char_p, _pointer, _pointer)),
    "sap_recording_free": (None, (_pointer,)),
    "sap_recording_read": (_int, (_pointer,) * 2),
    "sap_recording_write": (_int, (_pointer,) * 3),
    "sap_recording_close": (_int, (_pointer,) * 2),
    "sap_world_model_create": (_int, (_int, _int, _long, *(_pointer,) * 3)),
    "sap_world_model_free": (None, (_pointer,)),
    "sap_worlds_advance": (_int, (_pointer,) * 4),
    "sap_answer_moves": (_pointer, (_pointer,)),
    "sap_resting_create": (_int, (_pointer,) * 3),
    "sap_resting_free": (None, (_pointer,)),
    "sap_resting_horizon": (ctypes.c_double, (_pointer,)),
    "sap_resting_islands": (_int, (_pointer, _pointer, _long, _pointer)),
    "sap_resting_counts": (_int, (_pointer,) * 2),
    "sap_resting_due": (_int, (_pointer,) * 2),
    "sap_resting_wake": (_int, (_pointer, _pointer, _long, _int, _pointer)),
    "sap_resting_set_time_step": (_int, (_pointer, ctypes.c_double, _pointer)),
    "sap_resting_take_long_steps": (_int, (_pointer,) * 4),
    "sap_resting_take_step": (_int, (_pointer,) * 4),
    "sap_declarations": (ctypes.c_char_p, ()),
}


@functools.cache
def load(path: str) -> Any:
    """The library at a path, with the types of its functions.

    Raises:
        Unavailable: It cannot be loaded, is another library, or has another interface than this
            package.
    """
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise Unavailable(f"{path} cannot be loaded: {error}") from error
    if not hasattr(library, "sap_abi_version"):
        raise Unavailable(f"{path} is another library than that of this package")
    if library.sap_abi_version() != ABI_VERSION:
        message = f"{path} has interface {library.sap_abi_version()}; {ABI_VERSION} is needed"
        raise Unavailable(message)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            message = f"{path} is older than this package: it has no function {name}"
            raise Unavailable(message)
        function.restype, function.argtypes = result, arguments
    declare(library)
    text = struct_type("sap_bytes")
    library.sap_answer_bytes.restype, library.sap_answer_bytes.argtypes = text, (_pointer,)
    for name in ("sap_parse_problem", "sap_parse_solution"):
        getattr(library, name).argtypes = (text, _int, _pointer)
    return library
