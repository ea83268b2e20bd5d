#!/usr/bin/env python3
"""Builds .deps/pic/libsap_pic.a: objects of libsap_islands_client that Debian's archives lack.

  deploy/pic_objects.py [ROOT]     ROOT: that of deploy/arm64_root.sh, instead of this system

The library holds gRPC, protobuf, abseil, re2, c-ares and OpenSSL, hidden, so that it can live in
one process with other copies of them. Debian's archives of protobuf, abseil and re2 are compiled
for executables. A shared library can hold their objects too, except for some 60 of 500: those that
address thread-local variables, or data of the C and C++ runtime, as an executable may. These are
compiled here from Debian's sources of the installed versions, with the sources that apt knows, in a
minute of processor time. Nothing is done where that was done for these versions.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
if len(sys.argv) > 1:
    SYSTEM = pathlib.Path(sys.argv[1]).resolve()
    TARGET = SYSTEM / "pic"
    TOOLS = "aarch64-linux-gnu-"
else:
    SYSTEM = pathlib.Path("/")
    TARGET = ROOT / ".deps/pic"
    TOOLS = ""
# Source package: the package with its archives, their names, the directory of the sources, which is
# also that of their includes.
SOURCES = {
    "protobuf": ("libprotobuf-dev", "libprotobuf.a", "src"),
    "abseil": ("libabsl-dev", "libabsl_*.a", "."),
    "re2": ("libre2-dev", "libre2.a", "."),
}
RUNTIME = ("libstdc++.so.6", "libc.so.6")
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections",
         "-fdata-sections", "-w")
# Relocations that a shared library cannot have: offsets of thread-local variables, which one that
# is loaded late has no room for; and, where they are against data of another library, addresses
# relative to the instruction.
THREAD_LOCAL = re.compile(r"R_X86_64_(GOT)?TPOFF|R_AARCH64_TLS(LE|IE)")
RELATIVE = re.compile(r"R_X86_64_PC32|R_AARCH64_ADR_PREL")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def archive_directory():
    return SYSTEM / "usr/lib" / output(f"{TOOLS}gcc", "-print-multiarch").strip()


def data_of_runtime():
    """Names of the variables, tables and type information of the C and C++ runtime."""
    names = set()
    for library in RUNTIME:
        path = output(f"{TOOLS}gcc", f"-print-file-name={library}").strip()
        for line in output(f"{TOOLS}nm", "--dynamic", "--defined-only", path).splitlines():
            kind, name = line.split()[-2:]
            if kind not in "TtWi" or name.startswith(("_ZT", "_ZN")):
                names.add(name.split("@")[0])
    return names


def unfit_objects(archive, data):
    """Names of the objects of an archive that a shared library cannot hold."""
    unfit = set()
    name = None
    for line in output("readelf", "--relocs", "--wide", str(archive)).splitlines():
        if line.startswith("File:"):
            name = line.rsplit("(", 1)[1].rstrip(")")
        elif THREAD_LOCAL.search(line):
            unfit.add(name)
        elif RELATIVE.search(line) and line.split()[4].split("@")[0] in data:
            unfit.add(name)
    return sorted(unfit)


def defined(path):
    """The symbols that an object alone gives to others."""
    lines = output(f"{TOOLS}nm", "--extern-only", "--defined-only", str(path)).splitlines()
    return {line.split()[-1] for line in lines if line.strip() and line.split()[-2] in "TDBR"}


def fetch_sources(work, versions):
    """Unpacks the source packages, with Debian's patches, from the sources of this system."""
    lists, parts = work / "lists", work / "parts"
    for directory in (lists, parts, work / "cache/archives/partial"):
        directory.mkdir(parents=True)
    etc = pathlib.Path("/etc/apt")
    for path in [*etc.glob("sources.list"), *etc.glob("sources.list.d/*")]:
        text = path.read_text()
        if "debian" not in text:
            continue
        text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
        text = re.sub(r"^deb\s", "deb-src ", text, flags=re.MULTILINE)
        (parts / path.name).write_text(text)
    options = ("-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={parts}",
               "-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={work / 'cache'}",
               "-o", "APT::Sandbox::User=root")
    subprocess.run(["apt-get", "-qq", *options, "update"], check=True)
    wanted = [f"{source}={version}" for source, version in versions.items()]
    subprocess.run(["apt-get", "-qq", *options, "source", *wanted], check=True, cwd=work,
                   stdout=subprocess.DEVNULL)


def compile_object(archive, name, sources, build):
    """Compiles the source of an object of the archive, and checks that it defines the same."""
    debian = build / "debian" / archive.name
    debian.mkdir(parents=True, exist_ok=True)
    subprocess.run([f"{TOOLS}ar", "x", str(archive), name], check=True, cwd=debian)
    stem = name.removesuffix(".o").removesuffix(".cc")
    for source in sorted(sources.rglob(f"{stem}.cc")):
        if ".pc" in source.parts or "testing" in source.parts:
            continue
        target = build / f"{archive.stem}-{stem}.o"
        made = subprocess.run([f"{TOOLS}g++", f"--sysroot={SYSTEM}", *FLAGS, f"-I{sources}", "-c",
                               str(source), "-o", str(target)], check=False, capture_output=True)
        if made.returncode == 0 and defined(target) >= defined(debian / name):
            return target
    sys.exit(f"pic_objects: no source of {name} in {archive.name} defines what it does")


def installed_versions():
    """The version of the source of each package, here: other architectures have the same."""
    return {source: output("dpkg-query", "--show", "--showformat=${source:Version}", package)
            for source, (package, _, _) in SOURCES.items()}


def main():
    versions = installed_versions()
    stamp = TARGET / "VERSIONS"
    text = THREAD_LOCAL.pattern + "\n"
    text += "".join(f"{source} {version}\n" for source, version in versions.items())
    if stamp.exists() and stamp.read_text() == text:
        return
    data = data_of_runtime()
    unfit = collections.defaultdict(dict)
    for source, (_, pattern, _) in SOURCES.items():
        for archive in sorted(archive_directory().glob(pattern)):
            unfit[source][archive] = unfit_objects(archive, data)
    print(f"Compiling {sum(len(n) for a in unfit.values() for n in a.values())} objects of "
          f"{', '.join(SOURCES)} into {TARGET.relative_to(ROOT)}")
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        fetch_sources(work, versions)
        build = work / "build"
        build.mkdir()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            tasks = []
            for source, (_, _, folder) in SOURCES.items():
                sources = next(path for path in work.glob(f"{source}-*") if path.is_dir()) / folder
                tasks += [pool.submit(compile_object, archive, name, sources, build)
                          for archive, names in unfit[source].items() for name in names]
            objects = [str(task.result()) for task in tasks]
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir(parents=True)
        subprocess.run([f"{TOOLS}ar", "rcs", str(TARGET / "libsap_pic.a"), *objects], check=True)
        stamp.write_text(text)


if __name__ == "__main__":
    main()
