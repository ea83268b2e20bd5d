"""What each folder holds, and the maps of folders in the documents, which are made from it.

A map stands between <!-- folders: FOLDER --> and <!-- end of folders -->: the folders directly
within FOLDER ('.': the top level) that are named here, in their order.
"""

import posixpath
import re

import layers
from finding import Finding

FOLDERS = {
    "proto": "the schema of the wire, its rules of change, guide for authors of adapters",
    "proto/codec": "messages to the types of the solver and back",
    "proto/flags": "checks of the flags of `sap-server` and `sap-client`",
    "solver": "the solver, a library of its own without gRPC, protobuf, flags or logs",
    "solver/parallel": "tasks and work-sharing loops on oneTBB, stop token, vectors of four",
    "solver/cholesky": "elimination order (METIS), block-sparse and dense factorization",
    "solver/problem": "the checked problem, constraint graph, islands, options, solution",
    "solver/laws": "laws of constraints: impulse and cost as functions of a velocity",
    "solver/pools": "all constraints of one kind as arrays: laws and Jacobians",
    "solver/model": "what is constant in a solve: masses, Delassus estimates, parameters",
    "solver/newton": "Newton's method for one island: Hessian, line search, sweeps, certificate",
    "solver/derivatives": "derivatives of a solution, in reverse and in forward mode",
    "solver/split": "the islands of a scene as problems of their own, for several machines",
    "solver/run": "one call: all islands of a problem, and the results in its order",
    "solver/engine": "workspaces, sessions, batches, time limits: what every way in calls",
    "server": "the program `sap-server`: its contract, limits, flags and metrics",
    "server/scheduling": "admission, queue, limits and fairness between clients",
    "server/service": "the service without a transport: decode, admit, call the engine, encode",
    "server/worlds": "worlds of MuJoCo: models, workers, calls in slices",
    "server/worlds/worker": "the program `sap-worlds`: one thread, in a jail, that loads MuJoCo",
    "server/auth": "bearer tokens, certificates, and the client of a call",
    "server/ops": "call log, metrics and probes",
    "server/rpc": "gRPC on completion queues: methods, streams, health, drain, operator calls",
    "client/cpp": "the library `sap_client`, the program `sap-client`, a simulation",
    "client/cpp/backend": "where calls are answered: the interface, and the engine as that",
    "client/cpp/transport": "calls of a server by gRPC",
    "client/cpp/files": "files of messages: problems, recordings, replay",
    "client/cpp/split": "one scene over several servers, by whole islands",
    "client/cpp/commands": "the program `sap-client`",
    "client/cpp/simulation": "rigid bodies: collision, dynamics, scenes, pictures",
    "client/cpp/bench": "load generator and echo server",
    "client/cpp/examples": "programs that use the library; the documents show them",
    "client/c": "the C interface of solver and client, for every other language",
    "client/mujoco": "MuJoCo's constraints as problems, and its constraint solver replaced",
    "client/mujoco/preload": "the library that `sap-islands run` puts into programs of MuJoCo",
    "client/dart": "a constraint solver for DART, on the C interface",
    "client/examples": "clients in Go, Java, JavaScript, Python and Rust, by stock tools",
    "client/c/transport": "servers and files behind it, for the library that has them",
    "client/python": "the package `sap_islands`: client, gradients, MuJoCo, Drake, viewer",
    "tests": "mirrors the tree; problems with certified solutions, benchmarks, style of the tree",
    "deploy": "operation: packages, units, proxies, Kubernetes, alerts; documentation site",
}
# Folders of layers.py that belong to another one.
PARTS = ("solver/", "server/", "client/", "tests/")

_MAP = re.compile(r"(<!-- folders: (\S+) -->\n)(.*?)(<!-- end of folders -->)", re.DOTALL)


def check(tree):
    """All findings about the maps in the tree, a dict of path to text."""
    for path, text in tree.items():
        if path.endswith(".md") and text != with_maps(path, text):
            yield Finding(path, 1, "folders", "the map is not current: tests/tidy/tidy.py --write")
    for folder in layers.FOLDERS:
        if folder.endswith("/") and folder[:-1] not in FOLDERS and folder not in PARTS:
            yield Finding("tests/tidy/folders.py", 1, "folders", f"does not say what {folder} is")
    for folder in FOLDERS:
        if not any(path.startswith(folder + "/") for path in tree):
            yield Finding("tests/tidy/folders.py", 1, "folders", f"there is no {folder}")


def with_maps(path, text):
    """The text of a document with the maps that it should have."""
    here = posixpath.dirname(path) or "."
    return _MAP.sub(lambda match: match[1] + _table(match[2], here) + match[4], text)


def _table(parent, here):
    rows = ["", "| folder | what |", "|---|---|"]
    for folder, what in FOLDERS.items():
        above = [other for other in FOLDERS if folder.startswith(other + "/")]
        if max(above, key=len, default=".") == parent:
            name = posixpath.relpath(folder, parent)
            rows.append(f"| [{name}]({posixpath.relpath(folder, here)}) | {what} |")
    return "\n".join(rows) + "\n\n"
