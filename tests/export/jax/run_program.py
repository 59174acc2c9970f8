# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs a program that Turnpoint wrote for JAX on virtual devices, and says as JSON what came of it:
the collectives of the compiled text with their groups and bytes, the bytes of its arguments, and how far a step of it
is from one of the same network in one piece.

    python run_program.py FILE DEVICES
    python run_program.py FILE DEVICES --names      the names of its parameters
    python run_program.py LINE DEVICES --groups     the groups of a line of compiled text
"""

import importlib.util
import json
import math
import os
import re
import sys

# XLA would join collectives of neighbours, and take a collective of forward for the same one in backward: both hide
# what the program says.
PASSES = "all-reduce-combiner,cpu-all-reduce-combiner,all-gather-combiner,reduce-scatter-combiner,cse"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={sys.argv[2]} --xla_disable_hlo_passes={PASSES}"

BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8}
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
OPERATION = re.compile(rf"= (\(.*?\)|\S+) ({KINDS})(?:-start)?\(")


def bytes_of(shapes):
    """Of all arrays of a type such as "(f32[4,2]{1,0}, f32[])"."""
    total = 0
    for kind, extents in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", shapes):
        total += BYTES[kind] * math.prod(int(extent) for extent in extents.split(",") if extent)
    return total


def groups_of(line, devices):
    """The three spellings of replica_groups: {{0,1},{2,3}}, [2,4]<=[8] with a transposition, and axes of a mesh."""
    listed = re.search(r"replica_groups=\{(\{[\d,{}]*\})\}", line)
    if listed:
        return [[int(d) for d in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", listed[1])]
    spread = re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line)
    if spread:
        shape, source = ([int(n) for n in spread[i].split(",")] for i in (1, 2))
        order = [int(n) for n in spread[3].split(",")] if spread[3] else list(range(len(source)))
        strides = [math.prod(source[i + 1 :]) for i in range(len(source))]
        turned = [0]
        for axis in order:
            turned = [base + i * strides[axis] for base in turned for i in range(source[axis])]
        width = math.prod(shape[1:])
        return [turned[i : i + width] for i in range(0, len(turned), width)]
    named = re.search(r"replica_groups=mesh\[([^\]]*)\]\s*\{([^}]*)\}", line)
    if named:
        axes = dict((name, int(size)) for name, size in re.findall(r"'?(\w+)'?=(\d+)", named[1]))
        chosen = re.findall(r"\w+", named[2])
        groups = {}
        for device in range(devices):
            rest, at = device, {}
            for name in reversed(axes):
                rest, at[name] = divmod(rest, axes[name])
            groups.setdefault(tuple(at[name] for name in axes if name not in chosen), []).append(device)
        return list(groups.values())
    if "replica_groups={}" in line:
        return [list(range(devices))]
    raise ValueError(f"groups of another spelling: {line}")


def collectives_of(text, devices):
    found = []
    for line in text.splitlines():
        match = OPERATION.search(line)
        if not match:
            continue
        kind, size = match[2], bytes_of(match[1])
        if kind == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{([\d,{}]*)\}", line)[1]
            groups = sorted([int(d) for d in pair.split(",")] for pair in re.findall(r"\{([\d,]+)\}", pairs))
            found.append({"kind": "permute", "groups": groups, "bytes": size})
            continue
        groups = sorted(sorted(group) for group in groups_of(line, devices))
        members = len(groups[0])
        if members == 1:
            continue
        # What one device receives, as Turnpoint counts it: of all others their part, twice where sums come back.
        received = {
            "all-reduce": 2 * size * (members - 1) / members,
            "all-gather": size * (members - 1) / members,
            "reduce-scatter": size * (members - 1),
            "all-to-all": size * (members - 1) / members,
        }[kind]
        found.append({"kind": kind, "groups": groups, "bytes": received})
    return found


def main():
    if sys.argv[3:] == ["--groups"]:
        print(json.dumps(groups_of(sys.argv[1], int(sys.argv[2]))))
        return
    spec = importlib.util.spec_from_file_location("exported", sys.argv[1])
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    if sys.argv[3:] == ["--names"]:
        print(json.dumps({"names": [name for group in exported.GROUPS for name in group.names]}))
        return
    import jax
    import numpy as np

    mesh = exported.devices()
    weights, first, second, data = exported.drawn(1)
    state = lambda values: exported.place(mesh, values, exported.state_cut) if values else []
    held = exported.place(mesh, weights, exported.weights_cut)
    fed = exported.put(mesh, data, exported.DATA_SPECS)
    compiled = exported.program(mesh).lower(held, state(first), state(second), fed, np.float32(1), np.int32(1)).compile()
    local = lambda tree: sum(
        math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree)
    )
    print(
        json.dumps(
            {
                "collectives": collectives_of(compiled.as_text(), int(sys.argv[2])),
                "argument_bytes": compiled.memory_analysis().argument_size_in_bytes,
                "weight_bytes": local(held),
                "state_bytes": local(state(first)) + local(state(second)),
                "data_bytes": local(fed),
                "apart": exported.compare(mesh, compiled),
            }
        )
    )


if __name__ == "__main__":
    main()
