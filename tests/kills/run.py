#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills what writes, saves and measures, at random moments, and looks at what is left.

    run.py --programs build/bin --tests build/tests [--count 300] [--seed N]

Two fifths of the kills end the command line while it writes, three tenths a window that is edited and saved, three
tenths the probe, its ranks or the command line above them. After each: a file holds what it held before or all of what
was to be written; nothing stands beside it but, at most, one whole file that the next writing removes; what was saved is
there, the recovery copy can be read; no process of the run is alive; nothing of it lies in TMPDIR, which is the run's own,
or in /dev/shm. Everything is done in a folder of its own that is removed. Exit code 1 after the first five failures, or at
the end if there was one.
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds for what must come: a limit for hangs, not a judgement


class Failure(Exception):
    pass


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"waited in vain: {what}")
        time.sleep(0.01)


class Place:
    """A folder with homes of its own, and a word in the environment by which its processes are known."""

    def __init__(self, root, number):
        self.folder = pathlib.Path(root) / str(number)
        self.mark = f"TURNPOINT_KILLED_RUN={self.folder}"
        for name in ("out", "tmp", "home", "run"):
            (self.folder / name).mkdir(parents=True, mode=0o700)
        self.shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()

    def environment(self, **more):
        home = self.folder / "home"
        return {**os.environ, "TURNPOINT_KILLED_RUN": str(self.folder), "HOME": str(home), "TMPDIR": str(self.folder / "tmp"),
                "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "cache"),
                "XDG_RUNTIME_DIR": str(self.folder / "run"), "QT_QPA_PLATFORM": "offscreen", **more}

    def processes(self):
        """Numbers of the processes that are alive with our word."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                words = pathlib.Path("/proc", entry, "environ").read_bytes().split(b"\0")
                state = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if self.mark.encode() in words and state != "Z":
                found.append(int(entry))
        return found

    def is_left_clean(self):
        wait_until(lambda: not self.processes(), f"processes {self.processes()} outlive what started them")
        # The test program has a home of its own there, which it would remove at its end; the programs have nothing.
        if left := [n for n in os.listdir(self.folder / "tmp") if not n.startswith("app_tests-")]:
            raise Failure(f"left in TMPDIR: {left}")
        if os.path.isdir("/dev/shm"):
            if left := [n for n in set(os.listdir("/dev/shm")) - self.shared if "turnpoint" in n]:
                raise Failure(f"left in /dev/shm: {left}")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def without_times(document):
    """What two runs of one search have in common."""
    if isinstance(document, dict):
        return {k: without_times(v) for k, v in document.items() if k not in ("search_s", "elapsed_s")}
    return [without_times(v) for v in document] if isinstance(document, list) else document


def look_beside(programs, place, out):
    """Nothing stands beside `out`. A kill in the instant of replacing leaves the new file, and the next writing removes it."""
    others = [n for n in os.listdir(out.parent) if n != out.name]
    if not others:
        return
    parts = [n for n in others if re.fullmatch(re.escape(out.name) + r"\.part\d+-\d+", n)]
    try:
        for name in parts:
            json.loads((out.parent / name).read_text())
    except ValueError as error:
        raise Failure(f"{name} stands beside what was asked for, and is not whole: {error}") from error
    if len(others) > 1 or not parts or not out.exists():
        raise Failure(f"files beside the one that was asked for: {others}")
    before = out.read_bytes()
    subprocess.run([str(programs / "turnpoint-cli"), "hardware", "v100-16gb-1x2", "--out", str(out)], env=place.environment(),
                   check=True, capture_output=True)
    if os.listdir(out.parent) != [out.name]:
        raise Failure(f"the next writing leaves {others}")
    out.write_bytes(before)


class CommandLine:
    """Ended while it writes: before, in and after the writing, wherever the moment falls."""
    OLD = b'{"this": "was here before"}\n'

    def __init__(self, programs, place):
        self.programs = programs
        cli = str(programs / "turnpoint-cli")
        small = ["builtin:lenet", "--hardware", "v100-16gb-1x8"]  # a second, most of it writing 30 MB
        result = str(place.folder / "out" / "result.json")
        self.commands = {"search": [cli, "search", *small, "--plans", "--out"],
                         "frontier": [cli, "search", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--out"],
                         "profile": [cli, "hardware", "v100-16gb-2x8", "--out"]}
        run = lambda command: subprocess.run(command, env=place.environment(), check=True, capture_output=True)
        run([*self.commands["search"], result])
        self.commands["export"] = [cli, "export", result, "--point", "0", "--to", "json", "--out"]
        self.whole, self.seconds = {}, {}
        for name, command in self.commands.items():
            out = str(place.folder / "out" / f"{name}.whole")
            began = time.monotonic()
            run([*command, out])
            self.seconds[name] = time.monotonic() - began
            self.whole[name] = without_times(json.loads(pathlib.Path(out).read_text()))

    def round(self, place, chance):
        name = chance.choice(list(self.commands))
        out = place.folder / "out" / "file.json"
        before = chance.random() < 0.5
        if before:
            out.write_bytes(self.OLD)
        process = subprocess.Popen([*self.commands[name], str(out)], env=place.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        # The last fifth is the writing; half of the moments fall there.
        share = chance.random() if chance.random() < 0.5 else 0.8 + 0.25 * chance.random()
        time.sleep(share * self.seconds[name])
        kill(process.pid)
        ended = process.wait()
        look_beside(self.programs, place, out)
        if not out.exists():
            if before or ended == 0:
                raise Failure(f"{name}: the file is gone")
            return f"{name}: nothing written"
        if out.read_bytes() == self.OLD and ended != 0:
            return f"{name}: as before"
        try:
            whole = without_times(json.loads(out.read_text())) == self.whole[name]
        except ValueError:
            whole = False
        if not whole:
            raise Failure(f"{name}: neither what was there nor what was to be written, {out.stat().st_size} bytes")
        return f"{name}: whole" + (", killed behind it" if ended else "")


class Window:
    """Edited and saved without a pause, its recovery copy written all the time."""

    SESSION = '{"format":"turnpoint/session@1","scenario":{"model":"builtin:lenet","hardware":"v100-16gb-1x2"}}'

    def __init__(self, programs, tests):
        self.programs, self.real, self.program = programs, programs / "turnpoint", tests / "app_tests"

    def real_round(self, place, chance):
        """The program itself, at any moment from its start on: it has nothing unsaved."""
        session = place.folder / "out" / "s.turnpoint"
        session.write_text(self.SESSION)
        process = subprocess.Popen([str(self.real), str(session)], env=place.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(3 * chance.random())
        kill(process.pid)
        process.wait()
        if session.read_text() != self.SESSION or len(os.listdir(session.parent)) != 1:
            raise Failure("a session that was only opened has changed")
        return "window: the program itself, nothing unsaved"

    def round(self, place, chance):
        if self.real.exists() and chance.random() < 0.3:
            return self.real_round(place, chance)
        copies, saved = place.folder / "home" / "copies", place.folder / "out" / "mine.turnpoint"
        process = subprocess.Popen([str(self.program), "app_recovery_test", "a_window_that_is_edited"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=place.environment(TURNPOINT_TEST_RECOVERY=str(copies), TURNPOINT_TEST_QUICK="1",
                                                         TURNPOINT_TEST_SAVES=str(saved)))
        last = {"edited": 0, "saved": 0}
        wanted = chance.randrange(1, 12)
        said = ""
        for line in process.stdout:
            said += line
            word, _, number = line.strip().partition(" ")
            if word in last:
                last[word] = int(number)
            if last["edited"] >= wanted:
                break
        else:
            raise Failure(f"the window ended by itself: {said[-500:]}")
        time.sleep(0.06 * chance.random())
        kill(process.pid)
        process.stdout.read()
        process.wait()
        look_beside(self.programs, place, saved)
        notes = []
        if last["saved"] and not saved.exists():
            raise Failure("a session that was saved is gone")
        found = [p for p in copies.glob("*.turnpoint")]
        if len(found) > 1:
            raise Failure(f"several recovery copies: {found}")
        for file in ([saved] if saved.exists() else []) + found:
            try:
                session = json.loads(file.read_text())
                notes.append((file, int(session["notes"].split()[1])))
            except (ValueError, KeyError, IndexError) as error:
                raise Failure(f"{file.name} cannot be read: {error}") from error
        if saved.exists() and notes[0][1] < last["saved"]:
            raise Failure(f"saved {last['saved']}, and the file has {notes[0][1]}")
        return f"window: {'session' if saved.exists() else 'no session yet'}{' and copy' if found else ''}"


class Probe:
    """The probe, one of its ranks, or the command line above them, under measure and validate."""

    def __init__(self, programs, place):
        self.programs = programs
        self.cli = str(programs / "turnpoint-cli")
        self.result = str(place.folder / "out" / "result.json")
        subprocess.run([self.cli, "search", "builtin:lenet", "--hardware", "v100-16gb-1x2", "--batch", "64", "--out",
                        self.result], env=place.environment(), check=True, capture_output=True)

    def children(self, place, above):
        return [p for p in place.processes() if p != above]

    def round(self, place, chance):
        out = place.folder / "out" / "file.json"
        command = chance.choice(["measure", "validate"])
        words = {"measure": ["measure", "--backend", "cpu", "--ranks", "2", "--budget", "6", "--item", "0.1"],
                 "validate": ["validate", self.result, "--point", "0", "--backend", "cpu", "--steps", "100000", "--budget", "20",
                              "--no-proof"]}[command]
        process = subprocess.Popen([self.cli, *words, "--out", str(out)], env=place.environment(), text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_until(lambda: self.children(place, process.pid) or process.poll() is not None, "the probe to start")
        time.sleep(2 * chance.random())
        victims = self.children(place, process.pid)
        who = chance.choice(["command line", "probe", "probe"])
        if who == "command line" or not victims:
            kill(process.pid)
            process.wait()
            process.stderr.close()
        else:
            kill(chance.choice(victims))
            try:
                _, said = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                kill(process.pid)
                raise Failure(f"{command} hangs without its probe") from None
            if process.returncode not in (0, 5):
                raise Failure(f"{command} ended with {process.returncode}: {said[-300:]}")
            if process.returncode == 5 and "turnpoint-cli: " not in said:
                raise Failure(f"{command} does not say what happened: {said[-300:]}")
        look_beside(self.programs, place, out)
        for file in [out, *(place.folder / "home").rglob("*.json")]:
            try:
                if file.exists():
                    json.loads(file.read_text())
            except ValueError as error:
                raise Failure(f"{file.name} cannot be read: {error}") from error
        return f"{command}: {who} killed, exit {process.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of turnpoint-cli and turnpoint-probe")
    parser.add_argument("--tests", type=pathlib.Path, help="folder of app_tests; without it no window is killed")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    counts, failures = {}, []
    with tempfile.TemporaryDirectory(prefix="turnpoint-kills-") as root:
        kinds = [(4, CommandLine(options.programs, Place(root, "written"))), (3, Probe(options.programs, Place(root, "probed")))]
        if options.tests and (options.tests / "app_tests").exists():
            kinds.append((3, Window(options.programs, options.tests)))
        # In turn, so that a few kills are of every kind.
        order = [kind for turn in range(4) for weight, kind in kinds if turn < weight]
        for number in range(options.count):
            kind = order[number % len(order)]
            place = Place(root, number)
            try:
                what = kind.round(place, chance)
                place.is_left_clean()
                counts[what] = counts.get(what, 0) + 1
            except Failure as failure:
                failures.append(f"kill {number}: {failure}")
                print(failures[-1], flush=True)
                for pid in place.processes():
                    kill(pid)
            if len(failures) >= 5:
                break
    for what in sorted(counts):
        print(f"{counts[what]:5}  {what}")
    print(f"{sum(counts.values()) + len(failures)} kills, {len(failures)} failures, seed {options.seed}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
