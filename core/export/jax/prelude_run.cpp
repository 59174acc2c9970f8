// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/prelude.h"

namespace turnpoint::jax {

std::string_view update_rule(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return R"py(

STATES = 0  # numbers that the optimizer keeps for each weight


def rate_of(step):
    return LEARNING_RATE


def update(w, g, m, v, rate):
    """Plain gradient descent."""
    return w - rate * g, m, v
)py";
    case Optimizer::momentum:
      return R"py(

STATES = 1  # numbers that the optimizer keeps for each weight
MOMENTUM = 0.9


def rate_of(step):
    return LEARNING_RATE


def update(w, g, m, v, rate):
    m = MOMENTUM * m + g
    return w - rate * m, m, v
)py";
    case Optimizer::adam:
      return R"py(

STATES = 2  # numbers that the optimizer keeps for each weight
BETA_1, BETA_2, ADAM_EPSILON = 0.9, 0.999, 1e-8


def rate_of(step):
    """Of the step with this number, from 1: the correction for moments that began at zero is part of the rate (Kingma
    and Ba 2015, arXiv 1412.6980, section 2)."""
    return LEARNING_RATE * math.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)


def update(w, g, m, v, rate):
    m = BETA_1 * m + (1 - BETA_1) * g
    v = BETA_2 * v + (1 - BETA_2) * g * g
    return w - rate * m / (jnp.sqrt(v) + ADAM_EPSILON), m, v
)py";
    case Optimizer::lars:
    case Optimizer::lamb:
    case Optimizer::adafactor: break;
  }
  return {};
}

std::string_view last_lines() {
  return R"py(

# --- running it ------------------------------------------------------------------------------------------------------

WEIGHT_SPECS = [group.weight_specs() for group in GROUPS]
FIRST_SPECS = [group.state_specs() for group in GROUPS] if STATES > 0 else []
SECOND_SPECS = [group.state_specs() for group in GROUPS] if STATES > 1 else []
DATA_SPECS = [spec() for _, _, _, spec, _ in DATA]


def devices():
    found = jax.devices()
    count = math.prod(MESH.values())
    if len(found) < count:
        raise SystemExit(f"this plan is for {count} devices, and JAX sees {len(found)}; --cpu makes virtual ones")
    return Mesh(np.array(found[:count]).reshape(tuple(MESH.values())), tuple(MESH))


def mapped(function, mesh, before, after):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=before, out_specs=after, check_vma=False))


def program(mesh):
    """step(weights, first, second, data, rate, number) for the whole mesh. The loss comes back as a number of each
    device, to be added up."""
    before = (WEIGHT_SPECS, FIRST_SPECS, SECOND_SPECS, DATA_SPECS, P(), P())
    return mapped(step, mesh, before, (P(tuple(MESH)), WEIGHT_SPECS, FIRST_SPECS, SECOND_SPECS))


def put(mesh, values, specs):
    return [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(values, specs, strict=True)]


def place(mesh, groups, cut):
    """Whole parameters, a tuple for each group, as the plan lays them out; cut where `cut` says so of the group."""
    held = [tuple(put(mesh, values, group.specs)) for group, values in zip(GROUPS, groups, strict=True)]
    chosen = [i for i, group in enumerate(GROUPS) if cut(group)]
    own = lambda blocks: [part(pack(GROUPS[i], x), 0, *GROUPS[i].order) for i, x in zip(chosen, blocks)]
    before, after = [tuple(GROUPS[i].specs) for i in chosen], [GROUPS[i].flat for i in chosen]
    if chosen:
        for i, piece in zip(chosen, mapped(own, mesh, (before,), after)([held[i] for i in chosen])):
            held[i] = piece
    return held


def collect(mesh, groups, cut):
    """The way back, as arrays of NumPy."""
    whole, chosen = list(groups), [i for i, group in enumerate(GROUPS) if cut(group)]
    join = lambda runs: [unpack(GROUPS[i], all_gather(x, 0, *GROUPS[i].order)) for i, x in zip(chosen, runs)]
    before, after = [GROUPS[i].flat for i in chosen], [tuple(GROUPS[i].specs) for i in chosen]
    if chosen:
        for i, values in zip(chosen, mapped(join, mesh, (before,), after)([groups[i] for i in chosen])):
            whole[i] = values
    return [tuple(np.asarray(x) for x in values) for values in whole]


def weights_cut(group):
    return group.keeps == "weights cut"


def state_cut(group):
    return group.keeps != "nothing cut"


def drawn(seed):
    """Weights, both states of the optimizer and data to try the program with."""
    random = np.random.default_rng(seed)
    number = lambda shape: random.standard_normal(shape).astype(np.float32)
    like = lambda shape: number(shape) / math.sqrt(shape[0]) if len(shape) > 1 else 1 + 0.1 * number(shape)
    weights = [tuple(np.asarray(like(s), np.float32) for s in group.shapes) for group in GROUPS]
    first = [tuple(np.zeros(s, np.float32) for s in group.shapes) for group in GROUPS] if STATES > 0 else []
    second = [tuple(0.01 + 0.01 * random.random(s, np.float32) for s in g.shapes) for g in GROUPS] if STATES > 1 else []
    data = [random.integers(0, below, shape).astype(kind) if below else number(shape).astype(kind)
            for _, shape, kind, _, below in DATA]
    return weights, first, second, data


# Sums in another order differ by some 1e-6, and by more where states are small; a wrong collective by far more.
ROUNDING = 1e-4


def compare(mesh, run=None):
    """One step of the plan beside one of the network in one piece: the largest differences, of the loss and of each
    parameter and its states relative to the largest number in those of its operator. The optimizer's first state begins
    at zero, so that it is the gradient."""
    weights, first, second, data = drawn(1)
    rate = np.float32(1)  # so that the step changes weights by much
    state = lambda values: place(mesh, values, state_cut) if values else []
    held, fed = place(mesh, weights, weights_cut), put(mesh, data, DATA_SPECS)
    result = (run or program(mesh))(held, state(first), state(second), fed, rate, np.int32(1))
    loss, gradients = jax.jit(jax.value_and_grad(network))(weights, data, 1)
    apart = {"loss": abs(float(np.sum(np.asarray(result[0]))) - float(loss)) / max(abs(float(loss)), 1e-30)}
    new = [collect(mesh, result[1], weights_cut)]
    new += [collect(mesh, held, state_cut) if held else [] for held in result[2:]]
    for i, group in enumerate(GROUPS):
        old = [weights[i], first[i] if first else (), second[i] if second else ()]
        wanted = jax.device_get(jax.jit(update_each)(old[0], gradients[i], old[1], old[2], rate))
        for what, want, got in zip(("weight", "first state", "second state"), wanted, new):
            largest = max([float(np.max(np.abs(b))) for b in want], default=0.0)
            for name, b, c in zip(group.names, want, got[i] if got else ()):
                apart[f"{what} {name}"] = float(np.max(np.abs(b - c))) / max(largest, 1e-30)
    return apart


def main():
    options = argparse.ArgumentParser(description="One training step of a plan written by Turnpoint.")
    options.add_argument("--cpu", action="store_true", help="on virtual devices of this machine's processor")
    options.add_argument("--compare", action="store_true", help="beside the same step of the network in one piece")
    options.add_argument("--steps", type=int, default=1, help="training steps on drawn data")
    chosen = options.parse_args()
    mesh = devices()
    if chosen.compare:
        apart = compare(mesh)
        for what, difference in sorted(apart.items(), key=lambda item: -item[1])[:10]:
            print(f"{difference:.1e}  {what}")
        raise SystemExit(0 if all(difference < ROUNDING for difference in apart.values()) else 1)  # no number: not less
    weights, first, second, data = drawn(1)
    weights = place(mesh, weights, weights_cut)
    first, second = (place(mesh, values, state_cut) if values else [] for values in (first, second))
    data, run = put(mesh, data, DATA_SPECS), program(mesh)
    for number in range(1, chosen.steps + 1):
        rate = np.float32(rate_of(number))
        loss, weights, first, second = run(weights, first, second, data, rate, np.int32(number))
        print(f"step {number}: loss {float(np.sum(np.asarray(loss))):.6f}")


if __name__ == "__main__":
    main()
)py";
}

}  // namespace turnpoint::jax
