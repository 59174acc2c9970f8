// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/engine_programs.h"

namespace turnpoint {

namespace {

/// Before anything of an engine is loaded: where a process is among others, and how it says something.
constexpr std::string_view kBegin = R"py("""Runs training steps of a plan and says what they took.

run.py FOLDER, in every process that a launcher starts: plan.py there is the exported plan, job.json what is to be
run. What the processes have to say are lines of JSON on standard output; whatever else is printed goes to standard
error.
"""

import os
import sys

# Libraries print, too: the lines alone go where they are read.
ANSWER = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # a rank is one core, unless somebody says otherwise
os.environ["HF_HUB_OFFLINE"] = "1"  # models are made, none are fetched

import importlib.util
import json
import math
import signal
import threading
import time
import traceback
import warnings

warnings.filterwarnings("ignore")


def known(value):
    """JSON has no word for a number that is none."""
    if isinstance(value, dict):
        return {key: known(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say(kind, **words):
    ANSWER.write(json.dumps({"type": kind, **known(words)}) + "\n")
    ANSWER.flush()


class Refused(Exception):
    """What the user can do something about, in one sentence."""


def own_place():
    """Rank, number of ranks and rank on this host, as launchers tell them.

    srun that speaks PMI-2 tells the rank on the host by a name of its own; where nobody tells it, it is the rank.
    """
    for rank, size, *local in (
        ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "SLURM_LOCALID"),
        ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ):
        if rank in os.environ and size in os.environ:
            told = next(name for name in (*local, rank) if name in os.environ)
            return tuple(int(os.environ[name]) for name in (rank, size, told))
    return 0, 1, 0


def leave():
    """At once, whatever threads and libraries are about."""
    os.kill(os.getpid(), signal.SIGKILL)


def leave_with(parent, folder):
    """A process whose launcher has gone, or whose files have, works for nobody."""
    while os.getppid() == parent and os.path.exists(folder):
        time.sleep(0.3)
    leave()


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FOLDER = sys.argv[1]
with open(os.path.join(FOLDER, "job.json"), encoding="utf-8") as file:
    JOB = json.load(file)
RANK, RANKS, LOCAL = own_place()
threading.Thread(target=leave_with, args=(os.getppid(), FOLDER), daemon=True).start()


def progress(phase, fraction=-1):
    if RANK == 0:
        say("progress", phase=phase, fraction=fraction)
)py";

constexpr std::string_view kEnd = R"py(

def main():
    try:
        run()
    except Refused as error:
        say("error", what=str(error))
        leave()
    except BaseException as error:
        traceback.print_exc()
        said = " ".join(str(error).split()) or "it says no more"
        say("error", what=f"rank {RANK}: {type(error).__name__}: {said[:1000]}")
        leave()


if __name__ == "__main__":
    main()
)py";

}  // namespace

std::string program_of(const Engine& engine) {
  std::string text(kBegin);
  text += "\n\n";
  for (const auto part : engine.parts) text += part();
  text += kEnd;
  return text;
}

}  // namespace turnpoint
