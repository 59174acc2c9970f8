// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/engine_parts.h"

namespace turnpoint {

std::string_view jax_part() {
  return R"py(
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


def exchanges_of_device_0(collectives):
    """By kind and group: how many, and the bytes that it receives. Of permutations every device has its part."""
    found = {}
    for one in collectives:
        permutes = one["kind"] == "permute"
        ranks = () if permutes else tuple(next(group for group in one["groups"] if 0 in group))
        row = found.setdefault((one["kind"].replace("-", "_"), ranks), [0, 0])
        row[0] += 1
        row[1] += one["bytes"]
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
        collectives=exchanges_of_device_0(collectives_of(step.as_text(), JOB["devices"])),
        numerics=numerics,
        notes=notes,
    )
)py";
}

}  // namespace turnpoint
