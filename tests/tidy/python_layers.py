"""Who may import whom in the Python package, as layers.py says it of C++."""

import ast
import re

from finding import Finding

PACKAGE = "client/python/src/sap_islands/"

# Which rooms and modules each may import; the longest prefix of a module's name decides. Modules
# never import each other in a circle.
TYPES = ("arrays", "errors")
ARRAYS = (*TYPES, "_arrays")
PROCESS = ("errors", "native", "binaries", "_process")
# Structs, and files of them, which know no class of the package but arrays.
FORMATS = tuple(f"_library.{name}" for name in (
    "c_library", "c_memory", "c_structs", "c_solution", "declarations", "problem_reader",
    "formats"))
STRUCTS = (*ARRAYS, "binaries", *FORMATS)
DATA = (*STRUCTS, "problem", "solution", "options", "derivatives", "server_info", "session")
LIBRARY = (*DATA, *PROCESS, "tls", "_library")
FILES = (*DATA, "_library.c_records", "problem_files", "recording")
RESTING = (*DATA, "_library.c_resting", "resting")
CLIENT = (*LIBRARY, "client", "aio")
USERS = (*DATA, "client", "unsolved_policy")
GRADIENTS = (*USERS, "_gradients")
NATIVE_CALLS = ("binaries", "_library.c_library", "_library.declarations")
MUJOCO = (*USERS, *NATIVE_CALLS, "_library.c_worlds", "_library.native_client", "replacement",
          "mujoco")
REFEREE = (*FILES, "client", *MUJOCO, "referee")
PYTHON = {
    "arrays": (),
    "errors": TYPES,
    "_arrays": ARRAYS,
    **dict.fromkeys(FORMATS, STRUCTS),
    **dict.fromkeys(DATA[len(STRUCTS):], DATA),
    **dict.fromkeys(("problem_files", "recording"), FILES),
    "resting": RESTING,
    **dict.fromkeys(("joints", "motion"), ARRAYS),
    "tls": (),
    "native": (),
    "binaries": PROCESS,
    "_process": PROCESS,
    "_library": LIBRARY,
    "replacement": ("errors", "binaries"),
    "startup": ("mujoco",),
    "client": CLIENT,
    "aio": CLIENT,
    "ray": CLIENT,
    "unsolved_policy": USERS,
    "unsolved": USERS,
    "_gradients": GRADIENTS,
    "fem": (*ARRAYS, "problem", "fem"),
    "torch": GRADIENTS,
    "jax": GRADIENTS,
    "mujoco": MUJOCO,
    "drake": (*USERS, *NATIVE_CALLS, "drake"),
    "newton": (*USERS, "", "newton"),
    "gymnasium": (*MUJOCO, "gymnasium"),
    "scenes": MUJOCO,
    "soft_scenes": (*MUJOCO, "fem", "scenes"),
    "referee": REFEREE,
    "tools": (*CLIENT, *REFEREE, "replacement", "fem", "scenes", "soft_scenes", "tools"),
    "__main__": ("errors", "tools"),
    "": (*FILES, *CLIENT, "joints", "motion", "resting", "referee"),
}

# Packages that stay behind some modules: a user without them can use all the others.
PACKAGES = {
    "grpc": (),
    "google": (),
    "torch": ("torch",),
    "jax": ("jax",),
    "ray": ("ray",),
    "mujoco": ("mujoco", "gymnasium", "scenes", "soft_scenes", "referee", "tools"),
    "meshio": ("fem.mesh",),
    "pydrake": ("drake",),
    "newton": ("newton",),
    "warp": ("newton",),
    "gymnasium": ("gymnasium",),
    "viser": ("tools.viewer",),
    "trimesh": ("tools.shape_meshes",),
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
    if PACKAGE + "README.md" in tree:
        yield from _unnamed_rooms(modules, tree[PACKAGE + "README.md"])


def _unnamed_rooms(modules, readme):
    """Folders and public modules that the README of the package does not know."""
    tops = {path.removeprefix(PACKAGE).split("/")[0] for path in modules.values()}
    for top in sorted(tops):
        name = top.removesuffix(".py")
        if not name.startswith("__") and not re.search(rf"`{name}[`/]", readme):
            yield Finding(PACKAGE + "README.md", 1, "layout", f"does not name {top}")


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
