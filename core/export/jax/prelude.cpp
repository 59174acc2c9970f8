// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/prelude.h"

namespace turnpoint::jax {

std::string_view first_lines() {
  return R"py(import argparse
import math
import os
import sys

if __name__ == "__main__" and "--cpu" in sys.argv:  # before JAX looks for devices
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={math.prod(MESH.values())}"
    )

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if any(kind == "int64" for _, _, kind, _, _ in DATA):
    jax.config.update("jax_enable_x64", True)  # token numbers of 8 bytes, as the model file has them
)py";
}

std::string_view functions() {
  return R"py(
# --- collectives: one call each --------------------------------------------------------------------------------------


def position(axes):
    """Where this device stands among those of the axes, the first one outermost."""
    at = 0
    for axis in axes:
        at = at * MESH[axis] + lax.axis_index(axis)
    return at


def all_reduce(x, *axes):
    return lax.psum(x, axes)


def all_gather(x, dimension, *axes):
    return lax.all_gather(x, axes, axis=dimension, tiled=True)


def reduce_scatter(x, dimension, *axes):
    return lax.psum_scatter(x, axes, scatter_dimension=dimension, tiled=True)


def all_to_all(x, joined, cut, *axes):
    return lax.all_to_all(x, axes, split_axis=cut, concat_axis=joined, tiled=True)


def permute(x, pairs):
    return lax.ppermute(x, tuple(MESH), pairs)


def part(x, dimension, *axes):
    """This device's part of what it holds: no bytes."""
    size = x.shape[dimension] // math.prod(MESH[axis] for axis in axes)
    return lax.dynamic_slice_in_dim(x, position(axes) * size, size, dimension)


def start(size, *axes):
    """Where this device's part of a loop begins, parts being so large."""
    return position(axes) * size


def once(x, *axes):
    """x on the first of these devices, nothing on the others: what a sum over all of them must hold once."""
    return jnp.where(position(axes) == 0, x, jnp.zeros_like(x))


def again(x):
    """Keeps the compiler from taking a value of forward where the plan makes it once more."""
    return lax.optimization_barrier(x)


# --- operators -------------------------------------------------------------------------------------------------------


def groups_of(words):
    groups, inside = [], None
    for word in words.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            inside = []
        elif word == ")":
            groups.append(inside)
            inside = None
        elif inside is not None:
            inside.append(word)
        else:
            groups.append([] if word == "1" else [word])
    return groups


def contract(rule, *operands, **sizes):
    """einsum with dimensions of several loops, the outermost first: "n s k, k (h d) -> n h s d". A third operand is
    added to the result."""
    before, after = rule.split("->")
    result, parts = groups_of(after), []
    for x, words in zip(operands, before.split(","), strict=True):
        groups = groups_of(words)
        for extent, group in zip(x.shape, groups, strict=True):
            if len(group) == 1:
                sizes[group[0]] = extent
        names = [name for group in groups for name in group]
        parts.append((names, x.reshape([sizes[name] for name in names])))
    letters = {name: chr(97 + i) for i, name in enumerate(sizes)}
    spell = lambda names: "".join(letters[name] for name in names)
    loops = [name for group in result for name in group]
    spelled = ",".join(spell(names) for names, _ in parts[:2])
    y = jnp.einsum(f"{spelled}->{spell(loops)}", *(x for _, x in parts[:2]))
    if len(parts) == 3:
        names, x = parts[2]
        own = [name for name in loops if name in names]
        y = y + jnp.einsum(f"{spell(names)}->{spell(own)}", x).reshape([sizes[n] if n in own else 1 for n in loops])
    return y.reshape([math.prod(sizes[name] for name in group) for group in result])


def back(function, *values):
    return jax.vjp(function, *values)[1]


def transposed(linear, shape, gradient):
    return jax.linear_transpose(linear, jax.ShapeDtypeStruct(shape, gradient.dtype))(gradient)[0]


def narrowed(gradient, shape):
    """Summed over the dimensions along which an operand was broadcast."""
    wide = (1,) * (gradient.ndim - len(shape)) + tuple(shape)
    summed = tuple(d for d in range(gradient.ndim) if wide[d] == 1 and gradient.shape[d] > 1)
    return jnp.sum(gradient, axis=summed).reshape(shape)


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def told_gelu(x):
    return jax.nn.gelu(x, approximate=GELU_BY_TANH)


def gelu_tanh(x):
    return jax.nn.gelu(x, approximate=True)


def gated_silu(gate, up):
    return jax.nn.silu(gate) * up


def gated_gelu(gate, up):
    return gelu(gate) * up


def gated_gelu_tanh(gate, up):
    return gelu_tanh(gate) * up


def places(whole, first, shape):
    """Where each element of a block lies in the whole tensor, as one number."""
    at = jnp.uint32(0)
    for d, extent in enumerate(whole):
        along = (first[d] + lax.broadcasted_iota(jnp.int32, shape, d)).astype(jnp.uint32)
        at = at * jnp.uint32(extent) + along
    return at


def weighing(whole, first, shape):
    """By what results count in the loss of a network that has none of its own."""
    return (jnp.cos(places(whole, first, shape).astype(jnp.float32)) / math.prod(whole)).astype(jnp.float32)


def kept(operator, number, whole, first, shape):
    """Which elements dropout keeps: a hash of the step's number, the operator and the place in the whole tensor, so
    that a mask does not depend on who holds what."""
    at = places(whole, first, shape)
    at = at ^ (jnp.uint32(operator * 0x9E3779B9 % 2**32) + jnp.asarray(number, jnp.uint32) * jnp.uint32(0x85EBCA6B))
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        at = (at ^ (at >> jnp.uint32(shift))) * jnp.uint32(factor)
    return at >= jnp.uint32(int(DROPOUT * 2**32))


def dropped(x, mask):
    return jnp.where(mask, x / (1 - DROPOUT), 0.0)


def softmax(x, dimension, scale=1.0, first_query=None):
    """Of scaled scores; with `first_query` a token sees itself and those before it."""
    x = x * scale
    if first_query is not None:
        queries, keys = x.shape[-2:]
        x = jnp.where(first_query + jnp.arange(queries)[:, None] >= jnp.arange(keys)[None, :], x, -jnp.inf)
    return jax.nn.softmax(x, axis=dimension)


def softmax_back(y, gradient, dimension, scale=1.0):
    return scale * y * (gradient - jnp.sum(gradient * y, axis=dimension, keepdims=True))


def normal(x, dims, centred):
    over = tuple(range(x.ndim - dims, x.ndim))
    x = x - jnp.mean(x, axis=over, keepdims=True) if centred else x
    inverse = lax.rsqrt(jnp.mean(x * x, axis=over, keepdims=True) + EPSILON)
    return x * inverse, inverse, over


def norm(x, scale, bias, dims, centred):
    y = normal(x, dims, centred)[0]
    y = y if scale is None else y * scale
    return y if bias is None else y + bias


def norm_back(x, scale, gradient, dims, centred):
    """Gradients of x, scale and bias."""
    y, inverse, over = normal(x, dims, centred)
    g = gradient if scale is None else gradient * scale
    mean = jnp.mean(g, axis=over, keepdims=True) if centred else 0.0
    shape = x.shape[x.ndim - dims :] if scale is None else scale.shape
    of_x = inverse * (g - mean - y * jnp.mean(g * y, axis=over, keepdims=True))
    return of_x, narrowed(gradient * y, shape), narrowed(gradient, shape)


def rotate(x, first, back=False):
    """Rotary positions (Su et al. 2021, arXiv 2104.09864), halves of a head's channels turned against each other."""
    half = x.shape[-1] // 2
    angles = ROTARY_BASE ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angles = (first + jnp.arange(x.shape[-2])).astype(jnp.float32)[:, None] * angles
    sine, cosine = jnp.sin(-angles if back else angles), jnp.cos(angles)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=-1)


def look_up(table, rows, first):
    """Of a part of a table; rows that lie elsewhere are zero."""
    inside = (rows >= first) & (rows < first + table.shape[0])
    return jnp.where(inside[..., None], table[jnp.where(inside, rows - first, 0)], 0.0)


def look_up_back(shape, rows, first, gradient):
    inside = (rows >= first) & (rows < first + shape[0])
    gradient = jnp.where(inside[..., None], gradient, 0.0)
    return jnp.zeros(shape, gradient.dtype).at[jnp.where(inside, rows - first, 0)].add(gradient)


def cross_entropy(logits, labels, rows):
    """This device's part of the mean over all rows."""
    picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return jnp.sum(jax.nn.logsumexp(logits, axis=-1) - picked) / rows


def loss_statistics(logits, labels, blocks, first):
    """Three numbers for each row and block of classes: the logarithm of the sum of exponentials, what rounding lost of
    it (nothing in fp32), and the label's logit where the block has it."""
    classes = logits.shape[-1]
    by_block = logits.reshape(*logits.shape[:-1], blocks, classes // blocks)
    sums = jax.nn.logsumexp(by_block, axis=-1)
    inside = (labels >= first) & (labels < first + classes)
    at = jnp.where(inside, labels - first, 0)
    picked = jnp.where(inside, jnp.take_along_axis(logits, at[..., None], axis=-1)[..., 0], 0.0)
    own = (at // (classes // blocks))[..., None] == jnp.arange(blocks)
    return jnp.stack([sums, jnp.zeros_like(sums), jnp.where(own, picked[..., None], 0.0)], axis=-1)


def loss_of_statistics(statistics, rows):
    sums = jax.nn.logsumexp(statistics[..., 0] + statistics[..., 1], axis=-1)
    return jnp.sum(sums - jnp.sum(statistics[..., 2], axis=-1)) / rows


def convolve(x, w, strides, pads, groups):
    return lax.conv_general_dilated(x, w, strides, pads, feature_group_count=groups)


def by_channel(bias, dimensions):
    return bias.reshape((-1,) + (1,) * (dimensions - 2))


def over_channels(gradient):
    return jnp.sum(gradient, axis=(0,) + tuple(range(2, gradient.ndim)))


def pool(x, window, strides, pads, divide):
    """The largest, or with `divide` the sum over so many."""
    window, strides, pads = (1, 1) + window, (1, 1) + strides, ((0, 0), (0, 0)) + pads
    if divide:
        return lax.reduce_window(x, 0.0, lax.add, window, strides, pads) / divide
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, pads)


# --- parameters that lie alike: summed, cut and updated as one --------------------------------------------------------


def axes_in(spec):
    return tuple(axis for entry in spec if entry for axis in ((entry,) if isinstance(entry, str) else entry))


class Group:
    """Parameters of one operator. `keeps` says what of them is cut among the devices of `cut`, a piece for each, which
    may be in two stages: nothing, the optimizer's state, or the weights too. With `rows` a piece is whole rows."""

    def __init__(self, operator, parameters, keeps="nothing cut", cut=((), ()), rows=False):
        self.operator, self.keeps, self.rows = operator, keeps, rows
        self.names = [name for name, _, _ in parameters]
        self.shapes = [shape for _, shape, _ in parameters]
        self.specs = [spec for _, _, spec in parameters]
        self.order = cut[0] + cut[1]
        self.pieces = math.prod(MESH[axis] for axis in self.order)
        held = {axis for spec in self.specs for axis in axes_in(spec)}
        self.flat = P(tuple(axis for axis in MESH if axis in held) + self.order)
        self.local = [self.block(shape, spec) for shape, spec in zip(self.shapes, self.specs)]

    @staticmethod
    def block(shape, spec):
        ways = [math.prod(MESH[axis] for axis in axes_in([entry])) for entry in spec]
        return tuple(extent // n for extent, n in zip(shape, ways, strict=True))

    def weight_specs(self):
        return self.flat if self.keeps == "weights cut" else tuple(self.specs)

    def state_specs(self):
        return tuple(self.specs) if self.keeps == "nothing cut" else self.flat


def pack(group, values):
    """One run of all elements that can be cut into equal pieces; what fills it up is zero."""
    if group.rows:
        parts = []
        for x in values:
            x = x.reshape(x.shape[0] if x.ndim else 1, -1)
            rows = -(-x.shape[0] // group.pieces) * group.pieces
            parts.append(jnp.pad(x, ((0, rows - x.shape[0]), (0, 0))).reshape(group.pieces, -1))
        return jnp.concatenate(parts, axis=1).reshape(-1)
    run = jnp.concatenate([x.reshape(-1) for x in values]) if len(values) > 1 else values[0].reshape(-1)
    return jnp.pad(run, (0, -run.size % group.pieces))


def unpack(group, run):
    values, at = [], 0
    pieces = run.reshape(group.pieces, -1)
    for shape in group.local:
        if group.rows:
            rows = -(-(shape[0] if shape else 1) // group.pieces)
            width = rows * math.prod(shape[1:])
            x = pieces[:, at : at + width].reshape(group.pieces * rows, -1)
            values.append(x[: shape[0] if shape else 1].reshape(shape))
        else:
            width = math.prod(shape)
            values.append(run[at : at + width].reshape(shape))
        at += width
    return tuple(values)


def update_each(weights, gradients, first, second, rate):
    made = [update(*each, rate) for each in zip(weights, gradients, first or weights, second or weights, strict=True)]
    columns = list(zip(*made))
    return tuple(columns[0]), tuple(columns[1]) if first else (), tuple(columns[2]) if second else ()
)py";
}

}  // namespace turnpoint::jax
