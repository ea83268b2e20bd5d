"""Who may include whom: the direction of the data, wire to solution, as the tree keeps it."""

import os
import re

from finding import Finding

# Which folders and files each folder may include; the longest prefix of a path decides. A folder
# never includes one that stands below it.
PARALLEL = ("solver/parallel/",)
CHOLESKY = (*PARALLEL, "solver/cholesky/")
PROBLEM = (*CHOLESKY, "solver/problem/")
LAWS = (*PROBLEM, "solver/laws/")
POOLS = (*LAWS, "solver/pools/")
MODEL = (*POOLS, "solver/model/")
NEWTON = (*MODEL, "solver/newton/")
DERIVATIVES = (*NEWTON, "solver/derivatives/")
FACE = tuple(f"solver/{name}.h" for name in ("build_info", "differentiate", "solve"))
SOLVER = (*DERIVATIVES, "solver/split/", "solver/run/", *FACE)
ENGINE = (*SOLVER, "solver/engine/")
CODEC = (*ENGINE, "proto/codec/")
FLAGS = ("proto/flags/",)
CONFIGURATION = ("server/server_config.h", "server/service_error.h", "server/listen_address.h",
                 "server/server_identity.h", *FLAGS, *ENGINE)
SCHEDULING = (*CONFIGURATION, "server/scheduling/")
SERVICE = (*SCHEDULING, *CODEC, "server/service/")
WORLDS = (*SERVICE, "server/worlds/", "client/mujoco/python_calls.h", "client/mujoco/sap_mujoco.h")
AUTH = (*SCHEDULING, "server/auth/")
OPS = (*WORLDS, *AUTH, "server/ops/")
BACKEND = ("client/cpp/backend/", *(f"client/cpp/{name}.h" for name in (
    "connect_options", "credentials", "derivatives", "error", "outcomes", "problem",
    "resting_islands", "server_info", "session", "solution", "solve_options", "worlds")), *ENGINE)
CLIENT = ("client/cpp/", "solver/split/", *FLAGS, *CODEC)
FOLDERS = {
    "solver/parallel/": PARALLEL,
    "solver/cholesky/": CHOLESKY,
    "solver/problem/": PROBLEM,
    "solver/laws/": LAWS,
    "solver/pools/": POOLS,
    "solver/model/": MODEL,
    "solver/newton/": NEWTON,
    "solver/derivatives/": DERIVATIVES,
    "solver/": SOLVER,
    "solver/run/": SOLVER,
    "solver/engine/": ENGINE,
    "solver/split/": (*PROBLEM, "solver/split/"),
    "proto/codec/": CODEC,
    "proto/flags/": FLAGS,
    "server/scheduling/": SCHEDULING,
    "server/service/": SERVICE,
    "server/worlds/": WORLDS,
    "server/worlds/worker/": ("server/worlds/worker/", "server/worlds/worker_block.h",
                              "server/worlds/world_slice.h", "client/mujoco/"),
    "server/auth/": AUTH,
    "server/ops/": OPS,
    "server/rpc/": (*OPS, "server/rpc/"),
    "server/main.cc": ("server/", *ENGINE),
    "server/": CONFIGURATION,
    "client/c/": ("client/c/", *BACKEND),
    "client/c/transport/": ("client/c/", *CLIENT),
    "client/mujoco/": ("client/mujoco/", "client/c/tree_factorization.h", *ENGINE),
    "client/mujoco/preload/": (
        "client/mujoco/python_calls.h", "client/mujoco/fields.", "client/mujoco/preload/",
        "client/mujoco/released_versions.", "client/mujoco/timers.h"),
    "client/dart/": ("client/dart/", "client/c/sap_islands.h"),
    "client/cpp/backend/": BACKEND,
    "client/cpp/": CLIENT,
    "tests/": ("tests/", "client/", "proto/", "server/", "solver/"),
}
PROJECT = ("solver/", "proto/", "server/", "client/", "tests/")

# Libraries that stay behind one file or within some directories.
LIBRARIES = (
    (r"metis\.h|GKlib", "METIS", ("solver/cholesky/metis_separator.cc",)),
    (r"(oneapi/)?tbb/|oneapi/tbb\.h", "oneTBB", ("solver/parallel/task_arena.cc",)),
    (r"fcl/", "FCL", ("client/cpp/simulation/", "tests/client/cpp/simulation/")),
    (r"dart/", "DART", ("client/dart/", "tests/client/dart/", "tests/bench/dart_steps.cc")),
    (r"grpc(pp)?/", "gRPC",
     ("server/auth/", "server/ops/", "server/rpc/", "server/main.cc", "client/cpp/", "tests/")),
    (r"google/|sap/v1/", "protobuf",
     ("proto/codec/", "server/", "client/c/transport/", "client/cpp/", "tests/")),
    (r"CLI/", "CLI11", ("proto/flags/", "server/", "client/cpp/", "tests/bench/")),
    (r"spdlog/|fmt/|prometheus/", "logging or metrics", ("server/", "client/cpp/", "tests/")),
    (r"nlohmann/|zlib\.h", "JSON or compression", ("server/", "client/cpp/", "tests/")),
    (r"server/", "the server", ("server/", "tests/")),
    (r"Eigen/(Sparse|OrderingMethods|IterativeLinear)|cholmod", "another sparse solver",
     ("tests/",)),
)

# A user of the client library sees no transport, and the C library without one has none: neither
# here nor in what these include.
CLIENT_ENTRY = re.compile(
    r"client/(c/[^/]*\.cc|cpp/(backend/.*|examples/.*\.cc|[^/]*\.h|simulation/.*\.h))$")
TRANSPORT = re.compile(r"grpc(pp)?/|google/protobuf|sap/v1/")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)


def includes(text):
    """Yields (line, what) for each include."""
    for match in _INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def check(tree):
    """All findings about includes in the tree, a dict of path to text."""
    sources = {path: text for path, text in tree.items() if path.endswith((".h", ".cc"))}
    for path, text in sources.items():
        for line, included in includes(text):
            yield from _check_direction(path, line, included)
            yield from _check_library(path, line, included)
            if included.endswith(".cc"):
                yield Finding(path, line, "source", "a source is built, not included")
    yield from _check_client(sources)
    yield from _check_reached(tree, sources)


def _check_direction(path, line, included):
    owners = [folder for folder in FOLDERS if path.startswith(folder)]
    if not included.startswith(PROJECT):
        return
    owner = max(owners, key=len)
    if not included.startswith(FOLDERS[owner]):
        yield Finding(path, line, "direction", f"{owner} does not include {included}")


def _check_library(path, line, included):
    for pattern, name, places in LIBRARIES:
        if re.match(pattern, included) and not path.startswith(places):
            yield Finding(path, line, "library", f"{name} is included only by {', '.join(places)}")


def _check_client(sources):
    entries = [path for path in sources if CLIENT_ENTRY.match(path)]
    seen = set(entries)
    while entries:
        path = entries.pop()
        for line, included in includes(sources[path]):
            if TRANSPORT.match(included):
                yield Finding(path, line, "client header", f"shows {included} to users")
            if included in sources and included not in seen:
                seen.add(included)
                entries.append(included)


def _check_reached(tree, sources):
    """A header that nothing includes, or a source that nothing builds, is dead."""
    # The headers of client/c, which users copy, include each other without their folder.
    included = {os.path.join(folder, what) for path, text in sources.items()
                for _, what in includes(text) for folder in ("", os.path.dirname(path))}
    for path in sources:
        if path.endswith(".h"):
            if path not in included:
                yield Finding(path, 1, "unused", "no file includes it")
        elif not _is_built(path, tree):
            yield Finding(path, 1, "unused", "no CMakeLists.txt names it")


def _is_built(path, tree):
    directory = os.path.dirname(path)
    while directory:
        text = tree.get(directory + "/CMakeLists.txt", "")
        relative = os.path.relpath(path, directory)
        if re.search(rf"(?<![\w/.]){re.escape(relative)}(?![\w.])", text):
            return True
        # In a loop over nouns, as ${noun}_test.cc.
        for before, after in re.findall(r"([\w/]*)\$\{\w+\}([\w/]*\.cc)", text):
            noun = re.fullmatch(rf"{before}(\w+){re.escape(after)}", relative)
            if noun and re.search(rf"\b{noun.group(1)}\b", text):
                return True
        directory = os.path.dirname(directory)
    return False
