// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/engine_parts.h"

namespace turnpoint {

std::string_view jax_part() {
  return R"py(import re

progress("loading JAX")
if RANKS != 1:
    say("error", what="JAX runs all devices of a plan in one process, and there are more")
    leave()
# Which devices there are has to be said before JAX is loaded.
ON_PROCESSORS = JOB["backend"] == "cpu" or (JOB["backend"] == "auto" and not os.path.exists("/dev/nvidiactl"))
if ON_PROCESSORS:
    os.environ["JAX_PLATFORMS"] = "cpu"
    flags = [os.environ.get("XLA_FLAGS", ""), f"--xla_force_host_platform_device_count={JOB['devices']}"]
    os.environ["XLA_FLAGS"] = " ".join(flags).strip()
try:
    import jax
    import numpy as np
except Exception as error:  # of another version, or without a library of the system
    say("error", what=f"{sys.executable} cannot load JAX: {error}")
    leave()

BYTES = {
    "pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
    "u64": 8, "f64": 8,
}
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
OPERATION = re.compile(rf"= (\(.*?\)|\S+) ({KINDS})(-start)?\(")


def bytes_of(shapes):
    """Of all arrays of a type such as "(f32[4,2]{1,0}, f32[])"."""
    total = 0
    for kind, extents in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", shapes):
        total += BYTES.get(kind, 0) * math.prod(int(extent) for extent in extents.split(",") if extent)
    return total


def turned_devices(extents, order):
    """All devices in the order of "[2,4]T(1,0)": counted as rows of 4, listed by columns."""
    source = [int(n) for n in extents.split(",")]
    strides = [math.prod(source[i + 1 :]) for i in range(len(source))]
    turned = [0]
    for axis in [int(n) for n in order.split(",")] if order else range(len(source)):
        turned = [base + i * strides[axis] for base in turned for i in range(source[axis])]
    return turned


def groups_of(line):
    """XLA spells groups as lists of devices, as all devices cut into rows, or by axes of a mesh."""
    devices = JOB["devices"]
    listed = re.search(r"replica_groups=\{(\{[\d,{}]*\})\}", line)
    if listed:
        return [[int(d) for d in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", listed[1])]
    rows = re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line)
    if rows:
        turned, width = turned_devices(rows[2], rows[3]), math.prod(int(n) for n in rows[1].split(",")[1:])
        return [turned[i : i + width] for i in range(0, len(turned), width)]
    named = re.search(
        r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))?\s*\{([^}]*)\}", line
    )
    if named:
        axes = dict((name, int(size)) for name, size in re.findall(r"'?(\w+)'?=(\d+)", named[1]))
        chosen, groups = re.findall(r"\w+", named[4]), {}
        for place, device in enumerate(turned_devices(named[2], named[3]) if named[2] else range(devices)):
            rest, at = place, {}
            for name in reversed(axes):
                rest, at[name] = divmod(rest, axes[name])
            groups.setdefault(tuple(at[name] for name in axes if name not in chosen), []).append(device)
        return list(groups.values())
    if "replica_groups={}" in line:
        return [list(range(devices))]
    raise ValueError(f"XLA spells the groups of a collective in a way that is not known here: {line[:300]}")


def collectives_of(text):
    """Those of device 0 in the compiled program, by kind and group: how many, and the bytes that it receives."""
    found = {}
    for line in text.splitlines():
        match = OPERATION.search(line)
        if not match:
            continue
        size, kind, apart = bytes_of(match[1]), match[2], match[3]
        group = [] if kind == "collective-permute" else sorted(next(g for g in groups_of(line) if 0 in g))
        members = len(group)
        if members == 1:
            continue
        # What is only begun has what goes in beside what comes out.
        if apart and kind == "all-gather":
            size = size * members / (members + 1)
        if apart and kind == "collective-permute":
            size = size / 2
        received = {
            "all-reduce": lambda: 2 * size * (members - 1) / members,
            "all-gather": lambda: size * (members - 1) / members,
            "reduce-scatter": lambda: size * (members - 1),
            "all-to-all": lambda: size * (members - 1) / members,
            "collective-permute": lambda: size,
        }[kind]()
        name = "permute" if kind == "collective-permute" else kind.replace("-", "_")
        row = found.setdefault((name, tuple(group)), [0, 0])
        row[0] += 1
        row[1] += received
    return [
        {"kind": kind, "ranks": list(ranks), "count": count, "bytes": size}
        for (kind, ranks), (count, size) in sorted(found.items())
    ]


def held_bytes(tree):
    """On one device."""
    return sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree))


def run():
    if JOB["backend"] == "cuda" and jax.default_backend() != "gpu":
        raise Refused("JAX sees no GPU that it can use: --backend cpu makes virtual devices of this machine's processors")
    plan = loaded("plan", os.path.join(FOLDER, "plan.py"))
    if len(jax.devices()) < JOB["devices"]:
        raise Refused(
            f"the plan is for {JOB['devices']} devices, and JAX sees {len(jax.devices())}: --backend cpu makes virtual "
            "ones of this machine's processors"
        )
    mesh = plan.devices()
    weights, first, second, data = plan.drawn(JOB["seed"])
    state = lambda values: plan.place(mesh, values, plan.state_cut) if values else []
    held, first, second = plan.place(mesh, weights, plan.weights_cut), state(first), state(second)
    fed, notes = plan.put(mesh, data, plan.DATA_SPECS), []
    rate = lambda number: np.float32(plan.rate_of(number))
    progress("compiling")
    step = plan.program(mesh).lower(held, first, second, fed, rate(1), np.int32(1)).compile()
    numerics = None
    if JOB["prove"]:
        progress("proof")
        apart = plan.compare(mesh, step)
        loss = apart.pop("loss")
        # No number is further off than any number.
        where = max(apart, key=lambda what: math.inf if math.isnan(apart[what]) else apart[what])
        numerics = {"loss_error": loss, "gradient_error": apart[where], "where": where, "precision": "fp32"}
    memory = {"parameters": held_bytes(held), "optimizer": held_bytes((first, second))}
    losses, times, began = [], [], None
    while len(times) < JOB["steps"]:
        number = len(losses) + 1
        if number > JOB["warm_up"]:
            began = began or time.monotonic()
            if time.monotonic() - began > JOB["budget_s"] and len(times) >= 3:
                break
            progress("steps", len(times) / JOB["steps"])
        else:
            progress("warm-up", (number - 1) / JOB["warm_up"])
        start = time.perf_counter()
        loss, held, first, second = jax.block_until_ready(
            step(held, first, second, fed, rate(number), np.int32(number))
        )
        if number > JOB["warm_up"]:
            times.append(time.perf_counter() - start)
        losses.append(float(np.sum(np.asarray(loss))))
    statistics = [device.memory_stats() for device in mesh.devices.flat]
    if all(one and "peak_bytes_in_use" in one for one in statistics):
        memory["peak"] = max(one["peak_bytes_in_use"] for one in statistics)
        notes.append("the peak is that of the whole run on a device, as JAX's allocator counts it")
    else:
        planned = step.memory_analysis()
        memory["peak"] = (
            planned.argument_size_in_bytes
            + planned.output_size_in_bytes
            + planned.temp_size_in_bytes
            - planned.alias_size_in_bytes
        )
        notes.append("the peak is what XLA has set aside for the step: JAX does not count memory on these devices")
    backend = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
    say(
        "result",
        engine=f"jax {jax.__version__}",
        backend=backend,
        device="" if backend == "cpu" else mesh.devices.flat[0].device_kind,
        ranks=JOB["devices"],
        cores=len(os.sched_getaffinity(0)) if backend == "cpu" else JOB["devices"],
        times_s=times,
        losses=losses,
        memory=memory,
        collectives=collectives_of(step.as_text()),
        numerics=numerics,
        notes=notes,
    )
)py";
}

}  // namespace turnpoint
