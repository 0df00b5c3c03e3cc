# Runs the trainings of workloads/bottlenecks under spotter and reads what it found: what bench/corpus and the
# end-to-end test share. The trainings, and what each must be found to be, are in corpus.json beside them.

import json
import os
import subprocess

import machine

FOLDER = os.path.join(machine.ROOT, "workloads", "bottlenecks")
SKIP = 77  # exit status of a training, or of `within`, that cannot have what it needs here


class Missing(Exception):
    """This machine lacks what the training needs; says what."""


def corpus():
    with open(os.path.join(FOLDER, "corpus.json"), encoding="utf-8") as file:
        return json.load(file)["trainings"]


def gpu_double():
    """The folder of the stand-in for NVIDIA's library: $SPOTTER_DOUBLES, else beside the program."""
    beside = os.path.join(os.path.dirname(machine.spotter()), "tests", "doubles", "nvml")
    for folder in (os.environ.get("SPOTTER_DOUBLES"), beside):
        if folder and os.path.exists(os.path.join(folder, "libnvidia-ml.so.1")):
            return folder
    return None


def environment(training):
    """A GPU is shown to the training that is about one, and hidden from all others."""
    env = dict(os.environ)
    if not training.get("gpu"):
        env["CUDA_VISIBLE_DEVICES"] = ""
        return env
    env.pop("CUDA_VISIBLE_DEVICES", None)
    if not os.path.exists("/dev/nvidiactl"):
        double = gpu_double()
        if not double:
            raise Missing("no GPU, and no double of NVIDIA's library beside the program")
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [double, env.get("LD_LIBRARY_PATH")]))
    return env


def prepare(training, python, cache):
    """Let it write what it will read, so that this is not part of the run."""
    if training.get("prepare"):
        subprocess.run([python, os.path.join(FOLDER, training["script"]), "--cache", cache, "--seconds", "0"],
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(training, python, cache, recording, seconds=None, timeout=240):
    """Train once under spotter; the report as it was read from the recording. Raises Missing."""
    env = environment(training)
    prepare(training, python, cache)
    command = [machine.spotter(), "run", "-o", recording, "--", python,
               os.path.join(FOLDER, training["script"]), "--cache", cache]
    if seconds is not None:
        command += ["--seconds", str(seconds)]
    if training.get("within"):
        command = [os.path.join(FOLDER, "within"), *training["within"], "--", *command]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace") as process:
        try:
            _, said = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            raise
    if process.returncode == SKIP:
        reasons = [line.split("skipped: ", 1)[1] for line in said.splitlines() if "skipped: " in line]
        raise Missing(reasons[0] if reasons else "the training says that it cannot run here")
    if process.returncode != 0:
        raise RuntimeError(f"{training['script']} ended with {process.returncode}:\n{said[-3000:]}")
    out = subprocess.run([machine.spotter(), "report", recording, "--json"], capture_output=True, text=True,
                         check=True)
    return json.loads(out.stdout)


def first_finding(report):
    """What is named first, and whether the host was found busy with other things.

    A busy host is true and rightly said, but no part of any training; figures then mean little.
    """
    found = [finding["id"] for finding in report["findings"]]
    of_training = [name for name in found if name != "host-contended"]
    return (of_training or ["nothing"])[0], "host-contended" in found


def also_found(report):
    """The other findings that call for something, but for a busy host: id and severity."""
    said = {first_finding(report)[0], "host-contended"}
    return [f"{finding['id']} ({finding['severity']})" for finding in report["findings"]
            if finding["severity"] not in ("info", "ok") and finding["id"] not in said]
