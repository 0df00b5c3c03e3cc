#!/usr/bin/env python3
# Says what machine a figure was taken on: printed by itself, and put by every benchmark at the top of its result.
# Asks for the versions of the tools whose names it is given. Python's standard library only.

import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# How to ask a tool for its version, where it is not --version.
ASK = {"top": "-V", "pidstat": "-V"}


def spotter():
    """The program under test: $SPOTTER, else build/spotter."""
    return os.path.abspath(os.environ.get("SPOTTER") or os.path.join(ROOT, "build", "spotter"))


def torch_python():
    """A Python that can import torch, or None: $SPOTTER_TEST_PYTHON, else what is found."""
    named = os.environ.get("SPOTTER_TEST_PYTHON")
    check = 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'
    for candidate in [named] if named else ["/usr/bin/python3", "python3"]:
        try:
            if subprocess.run([candidate, "-c", check], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return candidate
        except OSError:
            pass
    return None


def first(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        return None
    return found[1].strip() if found else None


def version(tool):
    if tool == "spotter":
        tool = spotter()
    if not shutil.which(tool):
        return None
    out = subprocess.run([tool, ASK.get(os.path.basename(tool), "--version")], capture_output=True, text=True,
                         check=False)
    lines = (out.stdout or out.stderr).splitlines()
    return lines[0].strip() if lines else None


def torch_version():
    python = torch_python()
    if not python:
        return None
    ask = "import sys, torch; print('Python', sys.version.split()[0] + ', PyTorch', torch.__version__)"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False).stdout.strip()


def gpus():
    tool = shutil.which("nvidia-smi")
    if not tool:
        return None
    ask = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return "; ".join(subprocess.run(ask, capture_output=True, text=True, check=False).stdout.splitlines()) or None


def cores_used(seconds=2):
    """Cores in use by anything on this machine, over so long."""
    def used():
        user, nice, system = first("/proc/stat", r"^cpu +(\d+ \d+ \d+)").split()
        return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")

    before = used()
    time.sleep(seconds)
    return (used() - before) / seconds


def lines(*tools):
    """The description, a line each; what is not known is left out."""
    memory = first("/proc/meminfo", r"^MemTotal:\s*(\d+)")
    guest = " (virtual)" if first("/proc/cpuinfo", r"^(flags.*\bhypervisor\b)") else ""
    facts = {
        "cpu": first("/proc/cpuinfo", r"^model name\s*:(.*)") or platform.machine(),
        "cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}{guest}",
        "memory": f"{int(memory) / 1e6:.1f} GB" if memory else None,
        "gpu": gpus(),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": first("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "others": f"used {cores_used():.2f} cores before the first run",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "python": torch_version(),
    }
    for tool in tools:
        facts[os.path.basename(tool)] = version(tool)
    return [f"{name:<9} {value}" for name, value in facts.items() if value]


def keep(name, text):
    """Write bench/results/NAME and say where it is."""
    path = os.path.join(ROOT, "bench", "results", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"\nkept in {os.path.relpath(path)}")


if __name__ == "__main__":
    print("\n".join(lines(*(sys.argv[1:] or ["spotter"]))))
