#!/usr/bin/env python3
"""Builds solver, server, clients and tests for arm64, and runs them under emulation (qemu-user).

  tests/arm64.py

Not a part of tests/run.sh: without ccache it compiles for a quarter of an hour. Runs, two processes
at a time,

- the binaries of TESTS, except for the cases of LEFT_OUT, which cannot pass under emulation;
- solves of tests/data on 1 and 2 threads, whose bits must be equal, and compares them with those of
  build/release: status and iterations of every island must be equal, and the largest difference is
  printed;
- a server, asked by the client for arm64 and by that of this machine, with the same bits.

What emulation cannot show: times, and orders of memory accesses that this machine does not have.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
ARM64 = ROOT / "build/arm64"
HERE = ROOT / "build/release/bin/sap-client"
EMULATED = ("qemu-aarch64", "-L", str(ROOT / ".deps/arm64"))
CLIENT = (*EMULATED, str(ARM64 / "bin/sap-client"))

PRODUCTS = ("sap-server", "sap-client", "sap_islands", "sap_islands_client", "sap_islands_mujoco")
TESTS = (
    "c_library_test", "c_tree_factorization_test", "cholesky_storage_test",
    "constraint_closed_forms_test", "coulomb_friction_test", "differentiate_test",
    "golden_constraints_test", "server_config_test", "solver_cholesky_test", "solver_laws_test",
    "solver_model_test", "solver_newton_test", "solver_parallel_test", "solver_pools_test",
    "solver_problem_test", "solver_split_test", "solver_test", "warm_read_test", "warm_solve_test",
)
# loaded_library_test and those of server, client and e2e start programs, which needs a handler of
# binfmt_misc; solver_golden_test, solver_invariance_test and golden_gradients_test take too long.
LEFT_OUT = (
    # The filter of system calls that it sets up is not emulated.
    "IdleSpinnersTest.WhereTheKernelRefuses*",
)


def build():
    subprocess.run(["deploy/install_packages.sh", "build", "tests", "arm64"], check=True, cwd=ROOT)
    for preset, targets in (("release", ["sap-client"]), ("arm64", [*PRODUCTS, *TESTS])):
        print(f"== building preset {preset}", flush=True)
        subprocess.run(["cmake", "--preset", preset], check=True, cwd=ROOT,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", "--preset", preset, "--target", *targets], check=True,
                       cwd=ROOT)


def run_test(name):
    """The last lines of what a test binary prints, and whether it passed."""
    begin = time.monotonic()
    done = subprocess.run([*EMULATED, str(ARM64 / "bin" / name), "--gtest_brief=1",
                           f"--gtest_filter=*:-{':'.join(LEFT_OUT)}"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{name}: {time.monotonic() - begin:.0f} s, {done.stdout.splitlines()[-1]}", flush=True)
    if done.returncode != 0:
        print(done.stdout)
    return done.returncode == 0


def solve(client, file, *arguments):
    """A solution without its times."""
    done = subprocess.run([*client, "solve", str(file), *arguments], stdout=subprocess.PIPE)
    solution = json.loads(done.stdout)
    del solution["timings"], solution["islands"]["solve_time_s"]
    return solution


def relative_difference(a, b):
    """The largest difference of two arrays, relative to the largest entry."""
    largest = max(map(abs, b), default=0)
    return max((abs(x - y) for x, y in zip(a, b)), default=0) / largest if largest > 0 else 0.0


def compare(file):
    """What is wrong with solutions of a problem for arm64, and how far they are from those here."""
    one, two = (solve(CLIENT, file, "--threads", str(threads)) for threads in (1, 2))
    here = solve((HERE,), file)
    faults = []
    if one != two:
        faults.append(f"{file.name}: other bits on two threads")
    for name in ("status", "iterations"):
        if one["islands"][name] != here["islands"][name]:
            faults.append(f"{file.name}: another {name} of an island than here")
    return faults, relative_difference(one["velocity"], here["velocity"]), file.name


@contextlib.contextmanager
def server():
    """The address of a server under emulation."""
    with tempfile.TemporaryDirectory() as directory:
        address = f"unix:{directory}/socket"
        process = subprocess.Popen([*EMULATED, str(ARM64 / "bin/sap-server"), "--threads", "2",
                                    "--listen", address], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(f"{directory}/socket"):
                if process.poll() is not None:
                    sys.exit(f"arm64: the server has ended with {process.returncode}")
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()
            process.wait()


def ask_a_server(file):
    """What is wrong with the answers of a server to both clients."""
    embedded = solve(CLIENT, file)
    with server() as address:
        return [f"{file.name}: {client[-1]} has other bits from a server"
                for client in (CLIENT, (str(HERE),))
                if solve(client, file, "--server", address) != embedded]


def main():
    build()
    problems = [path for folder in (".", "constraints", "soft")
                for path in sorted((ROOT / "tests/data" / folder).glob("*.json*"))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        print("== running the tests", flush=True)
        passed = all(list(pool.map(run_test, TESTS)))
        print(f"== solving {len(problems)} problems", flush=True)
        compared = list(pool.map(compare, problems))
    faults = [fault for found, _, _ in compared for fault in found]
    faults += ask_a_server(ROOT / "tests/data/stacks_9x10_t2p00.json.gz")
    print(*faults, sep="\n")
    differences = sorted(((difference, name) for _, difference, name in compared), reverse=True)
    print(f"velocities: {sum(d == 0 for d, _ in differences)} of {len(problems)} with the bits of "
          "build/release; the largest relative differences:",
          ", ".join(f"{difference:.2g} ({name})" for difference, name in differences[:3]))
    sys.exit(0 if passed and not faults else 1)


if __name__ == "__main__":
    main()
