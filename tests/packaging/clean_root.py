"""A Debian system that has nothing but what it is told to install, made by mmdebstrap."""

import pathlib
import shlex
import subprocess
import tempfile


def run_in_clean_root(script, files, packages=()):
    """What a shell script prints in a new root, which is removed afterwards.

    Args:
        script: Runs as root, ends at the first command that fails.
        files: Copied to /given.
        packages: Debian packages to install at first.

    Raises:
        AssertionError: The script failed; its output is the message.
    """
    with tempfile.TemporaryDirectory() as scratch:
        given = pathlib.Path(scratch) / "given"
        given.mkdir()
        for file in files:
            (given / pathlib.Path(file).name).write_bytes(pathlib.Path(file).read_bytes())
        (given / "script").write_text("set -eu\n" + script)
        log = pathlib.Path(scratch) / "log"
        # Networks that intercept TLS have authorities of their own, which pip needs.
        authorities = "/etc/ssl/certs/ca-certificates.crt"
        done = subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=apt", "--format=null",
             "--include=" + ",".join(["ca-certificates", *packages]),
             f"--customize-hook=copy-in {given} /",
             f"--customize-hook=upload {authorities} {authorities}",
             f'--customize-hook=chroot "$1" sh /given/script > {shlex.quote(str(log))} 2>&1',
             "bookworm", "/dev/null"], capture_output=True, text=True)
        said = log.read_text() if log.exists() else ""
        if done.returncode != 0:
            raise AssertionError(f"{said}\n{done.stderr}")
        return said


def unpack_clean_root(directory, architecture, packages):
    """Unpacks Debian packages of any architecture, and what they depend on, into a new directory.

    Nothing of them is run, and their scripts are not.
    """
    subprocess.run(["mmdebstrap", "--quiet", "--variant=extract",
                    f"--architectures={architecture}", "--include=" + ",".join(sorted(packages)),
                    "bookworm", str(directory)], check=True)
