"""Who may include whom: the direction of the data, wire to solution, as the tree keeps it."""

import os
import re

from finding import Finding

# solver/ in the order of the data: a file includes its own stage and earlier ones only.
SOLVER_CHAIN = (
    ("lanes", "dense_cholesky", "growing_buffer", "pause", "loop_board", "pace", "parallel",
     "stop_token", "solver_options"),
    ("contact_problem", "rigid_bodies", "contact_solution"),
    ("islands",),
    ("contact_graph",),
    ("block_graph",),
    ("minimum_degree", "vertex_separator"),
    ("nested_dissection",),
    ("elimination_tree",),
    ("supernodes",),
    ("storage_planner",),
    ("front_layout", "front_kernels"),
    ("elimination_plan",),
    ("dense_front", "front_assembly", "front_solve"),
    ("block_cholesky",),
    ("friction_cone", "jacobian_kernels"),
    ("friction_contacts",),
    ("sap_model",),
    ("sap_data",),
    ("certificate", "conjugate_gradients", "hessian", "line_search", "sweeps"),
    ("conjugate_gradients",),
    ("sap_solver",),
    ("plan_cache",),
    ("solve",),
)

# What each directory may include of the project. The longest prefix of a path decides.
DIRECTORIES = {
    "solver/": ("solver/",),
    "server/": ("server/", "solver/"),
    "client/cpp/": ("client/cpp/", "server/", "solver/"),
    "tests/": ("tests/", "client/cpp/", "server/", "solver/"),
}
PROJECT = ("solver/", "server/", "client/", "tests/")

# Libraries that stay behind one file or within some directories.
LIBRARIES = (
    (r"metis\.h|GKlib", "METIS", ("solver/vertex_separator.cc",)),
    (r"(oneapi/)?tbb/|oneapi/tbb\.h", "oneTBB", ("solver/parallel.cc",)),
    (r"fcl/", "FCL", ("client/cpp/simulation/", "tests/client/")),
    (r"grpc(pp)?/|google/|sap/v1/", "gRPC or protobuf", ("server/", "client/cpp/", "tests/")),
    (r"CLI/", "CLI11", ("server/", "client/cpp/", "tests/bench/")),
    (r"spdlog/|fmt/|prometheus/", "logging or metrics", ("server/", "client/cpp/", "tests/")),
    (r"nlohmann/|zlib\.h", "JSON or compression", ("server/", "client/cpp/", "tests/")),
    (r"server/", "the server", ("server/", "client/cpp/embedded_transport.cc", "tests/")),
    (r"Eigen/(Sparse|OrderingMethods|IterativeLinear)|cholmod", "another sparse solver",
     ("tests/",)),
)

# A user of the client library sees no transport: neither here nor in what these include.
CLIENT_ENTRY = re.compile(r"client/cpp/(examples/.*\.cc|client\.h|simulation/.*\.h)$")
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
        if path.startswith("solver/"):
            yield from _check_chain(path, text)
    yield from _check_client(sources)
    yield from _check_reached(tree, sources)


def _check_direction(path, line, included):
    owners = [directory for directory in DIRECTORIES if path.startswith(directory)]
    if not owners or not included.startswith(PROJECT):
        return
    owner = max(owners, key=len)
    if not included.startswith(DIRECTORIES[owner]):
        yield Finding(path, line, "direction", f"{owner} does not include {included}")


def _check_library(path, line, included):
    for pattern, name, places in LIBRARIES:
        if re.match(pattern, included) and not path.startswith(places):
            yield Finding(path, line, "library", f"{name} is included only by {', '.join(places)}")


def _check_chain(path, text):
    stages = {noun: i for i, stage in enumerate(SOLVER_CHAIN) for noun in stage}
    noun = os.path.splitext(os.path.basename(path))[0]
    if noun not in stages:
        yield Finding(path, 1, "chain", "has no place in SOLVER_CHAIN of tests/tidy/layers.py")
        return
    for line, included in includes(text):
        other = os.path.splitext(os.path.basename(included))[0]
        if not included.startswith("solver/") or other not in stages:
            continue
        if stages[other] > stages[noun]:
            yield Finding(path, line, "chain", f"{included} comes later in the chain")


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
    included = {what for text in sources.values() for _, what in includes(text)}
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
