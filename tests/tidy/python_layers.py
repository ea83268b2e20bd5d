"""Who may import whom in the Python package, as layers.py says it of C++."""

import ast

from finding import Finding

PACKAGE = "client/python/src/sap_islands/"

# Which rooms and modules each may import; the longest prefix of a module's name decides. Modules
# never import each other in a circle.
TYPES = ("v1", "arrays", "errors")
ARRAYS = (*TYPES, "_arrays")
DATA = (*ARRAYS, "problem", "solution", "options", "derivatives", "server_info", "session")
FILES = (*DATA, "problem_files", "recording")
PROCESS = ("errors", "native", "binaries", "_process")
EMBEDDED = (*DATA, "native", "binaries", "_library")
REMOTE = (*DATA, "_process", "_remote")
SPLIT = (*DATA, "_library.native_solver", "_remote.address", "_split")
CLIENT = (*EMBEDDED, *PROCESS, *REMOTE, *SPLIT, "client", "aio")
USERS = (*DATA, "client", "unsolved_policy")
GRADIENTS = (*USERS, "_gradients")
NATIVE_CALLS = ("binaries", "_library.c_library")
MUJOCO = (*USERS, *NATIVE_CALLS, "mujoco")
REFEREE = (*FILES, "client", *MUJOCO, "referee")
PYTHON = {
    "v1": (),
    "arrays": (),
    "errors": TYPES,
    "_arrays": ARRAYS,
    **dict.fromkeys(DATA[len(ARRAYS):], DATA),
    **dict.fromkeys(FILES[len(DATA):], FILES),
    "native": (),
    "binaries": PROCESS,
    "_process": PROCESS,
    "_library": EMBEDDED,
    "_remote": REMOTE,
    "_split": SPLIT,
    "client": CLIENT,
    "aio": CLIENT,
    "ray": CLIENT,
    "unsolved_policy": USERS,
    "unsolved": USERS,
    "_gradients": GRADIENTS,
    "fem": (*ARRAYS, "problem"),
    "torch": GRADIENTS,
    "jax": GRADIENTS,
    "mujoco": MUJOCO,
    "drake": (*USERS, *NATIVE_CALLS, "drake"),
    "gymnasium": (*MUJOCO, "gymnasium"),
    "scenes": MUJOCO,
    "referee": REFEREE,
    "tools": (*CLIENT, *REFEREE, "scenes", "tools"),
    "__main__": ("errors", "tools"),
    "": (*FILES, *CLIENT, "referee"),
}

# Packages that stay behind some modules: a user without them can use all the others.
PACKAGES = {
    "grpc": ("errors", "_process", "_remote", "ray", "tools.commands.bench"),
    "google": ("v1", "errors", "problem_files", "recording", "_arrays.wire_format",
               "_remote.messages"),
    "torch": ("torch",),
    "jax": ("jax",),
    "ray": ("ray",),
    "mujoco": ("mujoco", "gymnasium", "scenes", "referee", "tools"),
    "pydrake": ("drake",),
    "gymnasium": ("gymnasium",),
    "viser": ("tools.viewer",),
    "trimesh": ("tools.viewer",),
    "matplotlib": ("referee.plots", "tools"),
    "scipy": (),
}


def check(tree):
    """All findings about imports in the package, of a tree that is a dict of path to text."""
    modules = {_name(path): path for path in tree
               if path.startswith(PACKAGE) and path.endswith(".py")}
    imported = {}
    for name, path in modules.items():
        imported[name] = []
        room = max((room for room in PYTHON if _is_in(name, (room,))), key=len, default=None)
        if room is None:
            yield Finding(path, 1, "layout", "has no line in the table PYTHON")
            continue
        for line, what in _imports(tree[path]):
            if what.split(".")[0] != "sap_islands":
                places = PACKAGES.get(what.split(".")[0])
                if places is not None and not _is_in(name, places):
                    yield Finding(path, line, "library", f"{what} is not imported by {name}")
                continue
            target = what.removeprefix("sap_islands").removeprefix(".")
            while target not in modules and "." in target:
                target = target.rpartition(".")[0]  # the name of a class or function
            imported[name].append((line, target))
            if not _is_in(target, PYTHON[room]):
                yield Finding(path, line, "direction", f"{room or name} does not import {target}")
    yield from _circles(modules, imported)


def _name(path):
    name = path.removeprefix(PACKAGE).removesuffix(".py").replace("/", ".")
    return "" if name == "__init__" else name.removesuffix(".__init__")


def _is_in(name, rooms):
    return any(name == room or name.startswith(room + ".") for room in rooms)


def _imports(text):
    """Yields (line, what) for each import, also those in functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name


def _circles(modules, imported):
    """Modules that are reached again from what they import."""
    for name, path in modules.items():
        for line, first in imported[name]:
            seen, left = set(), [first]
            while left:
                module = left.pop()
                if module not in seen:
                    seen.add(module)
                    left += [target for _, target in imported.get(module, ())]
            if name in seen:
                yield Finding(path, line, "circle", f"{first} imports {name} in turn")
