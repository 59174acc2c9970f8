// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/annotation_functions.h"

namespace turnpoint::jax {

std::string_view annotation_records() {
  return R"py(import functools
import math
import re
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


class Held(NamedTuple):
    """Parameters that lie alike."""

    pattern: str  # of their names: the keys of your tree, joined by dots
    count: int  # how many it must match
    shape: tuple
    layout: P  # as your model reads them
    state: P = None  # of their optimizer state, where the update is shared out
    stage: int = 0  # of ZeRO: 1 shares out the state, 2 gradients too, 3 weights too

    @property
    def stored(self):
        return self.state if self.stage == 3 else self.layout

    @property
    def gradient(self):
        return self.state if self.stage >= 2 else self.layout

    @property
    def update(self):
        return self.state if self.stage else self.layout


class Kept(NamedTuple):
    """Tensors that lie alike."""

    pattern: str
    count: int
    dims: tuple
    shape: tuple
    layouts: tuple  # where its maker leaves it so, then where its readers take it


)py";
}

std::string_view annotation_functions() {
  return R"py(

@functools.cache
def mesh():
    count = math.prod(MESH.values())
    if len(jax.devices()) < count:
        raise RuntimeError(f"this plan is for {count} devices, and JAX sees {len(jax.devices())}")
    return Mesh(np.array(jax.devices()[:count]).reshape(tuple(MESH.values())), tuple(MESH))


def dotted(path):
    words = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path]
    return ".".join(words).replace("/", ".").removeprefix("params.")


def held(parameters):
    """The row of each parameter by its name. Stops with the first pattern that does not match as the plan has it."""
    leaves = {dotted(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(parameters)[0]}
    rows = {}
    for row in PARAMETERS:
        found = [name for name in leaves if re.fullmatch(row.pattern, name)]
        if len(found) != row.count:
            raise ValueError(
                f"{row.pattern!r} matches {len(found)} parameters of your model, not {row.count}: it is not the plan's"
            )
        for name in found:
            if tuple(leaves[name].shape) != row.shape:
                raise ValueError(f"{name} has the shape {tuple(leaves[name].shape)}, not {row.shape}: it is not the plan's")
            rows[name] = row
    for name in leaves:
        if name not in rows:
            raise ValueError(f"{name} is a parameter of your model that the plan does not have")
    return rows


def laid(parameters, how):
    rows = held(parameters)
    return jax.tree_util.tree_map_with_path(lambda path, _: NamedSharding(mesh(), how(rows[dotted(path)])), parameters)


def parameter_shardings(parameters):
    """How parameters lie between steps: for jax.jit's in_shardings and out_shardings, and jax.device_put."""
    return laid(parameters, lambda row: row.stored)


def state_shardings(state, parameters):
    """The same of optimizer state: of every array in it that is shaped and called as a parameter; others are whole."""
    rows = held(parameters)

    def lies(path, leaf):
        name = dotted(path)
        own = max((known for known in rows if name == known or name.endswith("." + known)), key=len, default=None)
        alike = own is not None and tuple(leaf.shape) == rows[own].shape
        return NamedSharding(mesh(), rows[own].update if alike else P())

    return jax.tree_util.tree_map_with_path(lies, state)


def data_sharding(name):
    return NamedSharding(mesh(), DATA[name])


def read(parameters):
    """Parameters as the plan's operators read them: call it first inside the function that you differentiate."""
    return jax.lax.with_sharding_constraint(parameters, laid(parameters, lambda row: row.layout))


def summed(gradients):
    """Gradients as the plan sums them."""
    return jax.lax.with_sharding_constraint(gradients, laid(gradients, lambda row: row.gradient))


def cut(parameters):
    """Parameters, or gradients, as their update is shared out: call it before the optimizer's rule and behind it."""
    return jax.lax.with_sharding_constraint(parameters, laid(parameters, lambda row: row.update))


constrained = set()  # names that constrain() has met


def constrain(name, x, dims=None, reader=None):
    """A tensor of your model, laid out as the plan has it.

    `dims` says what its dimensions are where they are not the table's: "batch sequence head*head_channel".
    `reader`: the copy that this reader takes, where the table has one ("maker -> reader").
    """
    key = name if reader is None else f"{name} -> {reader}"
    row = next((row for row in TENSORS if re.fullmatch(row.pattern, key)), None)
    if row is None:
        raise ValueError(f"{key} is no tensor of the plan")
    constrained.add(key)
    for layout in row.layouts:
        sharding = NamedSharding(mesh(), arranged(key, row, layout, tuple(x.shape), dims))
        x = jax.lax.with_sharding_constraint(x, sharding)
    return x


def arranged(key, row, layout, shape, dims):
    """The layout of an array whose dimensions are the table's in another order, or joined."""
    sizes, axes = dict(zip(row.dims, row.shape)), dict(zip(row.dims, layout))
    joined = [part.split("*") for part in dims.split()] if dims else [[dim] for dim in row.dims]
    if sorted(dim for part in joined for dim in part) != sorted(row.dims):
        raise ValueError(f"{key} has the dimensions {' '.join(row.dims)}, not {dims}")
    wanted = tuple(math.prod(sizes[dim] for dim in part) for part in joined)
    if shape != wanted:
        raise ValueError(f"{key} has the shape {shape}, not {wanted}: it is not the plan's")
    entries = []
    for part in joined:
        longer = [dim for dim in part if sizes[dim] > 1] or part[:1]
        if any(axes[dim] for dim in longer[1:]):
            raise ValueError(f"{key} is split inside {'*'.join(longer)}, which no PartitionSpec says")
        entries.append(axes[longer[0]])
    return P(*entries)


def unconstrained():
    """Rows of TENSORS, with how many of their tensors no call of constrain() has named: XLA lays these out itself."""
    met = {row.pattern: sum(bool(re.fullmatch(row.pattern, key)) for key in constrained) for row in TENSORS}
    return {row.pattern: row.count - met[row.pattern] for row in TENSORS if met[row.pattern] < row.count}
)py";
}

}  // namespace turnpoint::jax
