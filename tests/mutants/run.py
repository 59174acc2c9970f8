#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which small slips in the code the tests notice; called by `packaging/check --mutants`.

slips.json lists slips: a piece of a source (`find`, which occurs there once) and what stands there instead (`with`, in
which SLIP is true while the slip is made). All of them are compiled into one copy of the sources, in build/mutants; the
variable TURNPOINT_SLIP then chooses one. Each is tried against the tests of its module until one fails.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "mutants"
COPY = FOLDER / "src"
OUT = COPY / "build"  # where that of the sources themselves lies, so that ccache finds what has no slip in it
ENOUGH = 0.75  # of the slips of every module


def read_slips():
    listed = json.loads((ROOT / "tests/mutants/slips.json").read_text())
    slips = []
    for module, group in listed.items():
        for slip in group["slips"]:
            slips.append({"tests": group["tests"], "unsafe": False, **slip, "module": module})
    numbers = [slip["id"] for slip in slips]
    if len(set(numbers)) != len(numbers) or 0 in numbers:
        sys.exit("mutants: the numbers in slips.json must differ and not be 0")
    return slips


def with_slips(text, slips, name):
    for slip in slips:
        if text.count(slip["find"]) != 1:
            sys.exit(f"mutants: slip {slip['id']}: {name} has the text to be changed {text.count(slip['find'])} times, not once")
        switch = f"(::turnpoint::mutants::chosen == {slip['id']})"
        text = text.replace(slip["find"], slip["with"].replace("SLIP", switch))
    return '#include "tests/mutants/slip.h"\n' + text


def copy_sources(slips):
    """Writes only what changed, so that a second run compiles little."""
    by_file = {}
    for slip in slips:
        by_file.setdefault(slip["file"], []).append(slip)
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True).stdout.decode().split("\0")
    present = {name for name in listed if name and (ROOT / name).is_file()}
    for name in by_file:
        if name not in present:
            sys.exit(f"mutants: {name}, which slips.json names, does not exist")
    for name in present:
        source, copy = ROOT / name, COPY / name
        content = source.read_bytes()
        if name in by_file:
            content = with_slips(content.decode(), by_file[name], name).encode()
        if copy.is_file() and copy.read_bytes() == content:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        copy.chmod(source.stat().st_mode & 0o777)
    for path in [p for p in COPY.rglob("*") if p.is_file() and OUT not in p.parents]:
        if str(path.relative_to(COPY)) not in present:
            path.unlink()


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout[-6000:])
        sys.exit("mutants: the sources with their switches do not build")
    return done.stdout


def build(expressions, jobs):
    """Names of the tests by expression, built with what they run: every test is a target by its name."""
    run(["cmake", "-S", COPY, "-B", OUT, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTURNPOINT_BENCHMARKS=OFF"])
    tests = {}
    for expression in expressions:
        found = re.findall(r"Test +#\d+: (\S+)", run(["ctest", "--test-dir", OUT, "-N", "-R", expression]))
        if not found:
            sys.exit(f"mutants: no test is called {expression}")
        tests[expression] = found
    targets = sorted({name for names in tests.values() for name in names})
    run(["cmake", "--build", OUT, "--parallel", str(jobs), "--target", *targets])
    return tests


def ctest(names, slip, limit_s):
    environment = {**os.environ, "TURNPOINT_SLIP": str(slip), "QT_QPA_PLATFORM": "offscreen",
                   "TURNPOINT_DATA": os.environ.get("TURNPOINT_DATA", str(ROOT.parent / "shared" / "data"))}
    return subprocess.run(["ctest", "--test-dir", OUT, "-R", "^(" + "|".join(names) + ")$", "--stop-on-failure",
                           "--timeout", str(limit_s), "--parallel", "2"], capture_output=True, text=True, env=environment)


def seconds_without_slips(names, limit_s):
    """How long each test takes; all of them have to pass."""
    done = ctest(sorted(names), 0, limit_s)
    if done.returncode != 0:
        print(done.stdout[-3000:])
        sys.exit("mutants: a test fails without any slip")
    return {name: float(time) for name, time in re.findall(r": (\S+) \.+ +Passed +([0-9.]+) sec", done.stdout)}


def who_notices(slip, names, seconds, limit_s):
    """Name of the first test that fails, the quick ones tried first, or None."""
    quick = [name for name in names if seconds[name] < 3]
    slow = sorted((name for name in names if seconds[name] >= 3), key=seconds.get)
    for batch in ([quick] if quick else []) + [[name] for name in slow]:
        done = ctest(batch, slip, limit_s)
        if done.returncode == 0:
            continue
        failed = re.search(r": (\S+) \.+.*?\*\*\*(\w+)", done.stdout)
        return f"{failed[1]} ({failed[2].lower()})" if failed else "?"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", help="only the slips of this module")
    parser.add_argument("--id", type=int, action="append", help="only this slip; may be repeated")
    parser.add_argument("--limit", type=int, default=240, help="seconds that a test may take (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="how many compilers at once (%(default)s)")
    options = parser.parse_args()
    all_slips = read_slips()
    slips = [s for s in all_slips if (not options.module or s["module"] == options.module) and
             (not options.id or s["id"] in options.id)]
    if not slips:
        sys.exit("mutants: no slip is chosen")

    print(f"==> Building with {len(slips)} slips that can be switched on ({OUT})", flush=True)
    copy_sources(slips)  # of one module alone, so that ccache has the others' files without switches
    tests = build(sorted({slip["tests"] for slip in slips}), options.jobs)
    seconds = seconds_without_slips({name for names in tests.values() for name in names}, options.limit)
    survivors, score = [], {}
    for slip in slips:
        start = time.monotonic()
        noticed = who_notices(slip["id"], tests[slip["tests"]], seconds, options.limit)
        counts = score.setdefault(slip["module"], [0, 0])
        counts[0] += noticed is not None
        counts[1] += 1
        if noticed is None:
            survivors.append(slip)
        print(f"{slip['id']:4}  {slip['module']:18} {time.monotonic() - start:6.1f} s  "
              f"{'noticed by ' + noticed if noticed else 'SURVIVES'}  ({slip['what']})", flush=True)

    print("\nmodule              noticed")
    low = []
    for module, (noticed, count) in score.items():
        print(f"{module:18}  {noticed:3} of {count:3}")
        if noticed < ENOUGH * count:
            low.append(module)
    print(f"{'all':18}  {sum(n for n, _ in score.values()):3} of {sum(c for _, c in score.values()):3}")
    unsafe = [slip for slip in survivors if slip["unsafe"]]
    for slip in unsafe:
        print(f"mutants: slip {slip['id']} makes a bound unsafe or a plan wrong and survives: {slip['file']}: {slip['what']}")
    for module in low:
        print(f"mutants: less than three quarters of the slips in {module} are noticed")
    return 1 if unsafe or low else 0


if __name__ == "__main__":
    sys.exit(main())
