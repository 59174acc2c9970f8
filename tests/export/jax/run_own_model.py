# SPDX-License-Identifier: Apache-2.0
"""Somebody's own models in JAX, laid out by a file of annotations on virtual devices. One step of training is compiled;
printed as JSON: its collectives, the bytes of its arguments, how far loss, gradients and new weights are from those of
the model on one device, and which tensors of the plan the model does not name.

    python run_own_model.py FILE DEVICES MODEL BATCH SEQUENCE [CONFIG]
    python run_own_model.py ... --rename OLD=NEW     a parameter is called otherwise: prints what the file says to that
    python run_own_model.py ... --table              the names and shapes of the model's parameters
"""

import importlib.util
import json
import math
import os
import sys

from compiled_text import collectives_of

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={sys.argv[2]}"

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)  # token numbers of 8 bytes, as plans count them

keep = lambda name, x, dims=None: x  # what lay_out() puts in its place


def nested(flat):
    """{"a.b": 1} -> {"a": {"b": 1}}"""
    tree = {}
    for name, value in flat.items():
        *path, leaf = name.split(".")
        at = tree
        for word in path:
            at = at.setdefault(word, {})
        at[leaf] = value
    return tree


def cross_entropy(logits, labels):
    rows = jax.nn.log_softmax(logits, axis=-1)
    chosen = jnp.sum(jnp.where(labels[..., None] == jnp.arange(logits.shape[-1]), rows, 0), axis=-1)
    return -jnp.mean(chosen)


# --- a perceptron ------------------------------------------------------------------------------------------------------


class Mlp:
    def __init__(self, batch, sequence, config):
        self.shapes = {"w1": (32, 64), "b1": (64,), "w2": (64, 16), "b2": (16,)}
        self.data = {"x": ((batch, 32), None)}

    def loss(self, p, data):
        h = keep("relu", jax.nn.relu(keep("fc1", keep("x", data["x"]) @ p["w1"] + p["b1"])))
        return jnp.sum(keep("fc2", h @ p["w2"] + p["b2"]) ** 2)


# --- LeNet ---------------------------------------------------------------------------------------------------------------


class LeNet:
    def __init__(self, batch, sequence, config):
        self.shapes = {
            "features.conv1.weight": (6, 1, 5, 5),
            "features.conv1.bias": (6,),
            "features.conv2.weight": (16, 6, 5, 5),
            "features.conv2.bias": (16,),
            "classifier.fc1.weight": (400, 120),
            "classifier.fc1.bias": (120,),
            "classifier.fc2.weight": (120, 84),
            "classifier.fc2.bias": (84,),
            "classifier.fc3.weight": (84, 10),
            "classifier.fc3.bias": (10,),
        }
        self.data = {"images": ((batch, 1, 32, 32), None), "labels": ((batch,), 10)}

    def loss(self, p, data):
        x = keep("images", data["images"])
        for i in (1, 2):
            layer = p["features"][f"conv{i}"]
            x = jax.lax.conv_general_dilated(x, layer["weight"], (1, 1), "VALID")
            x = keep(f"features.conv{i}", x + layer["bias"][:, None, None])
            x = keep(f"features.relu{i}", jax.nn.relu(x))
            x = jnp.mean(x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2), axis=(3, 5))
            x = keep(f"features.pool{i}", x)
        x = keep("classifier.flatten", x.reshape(x.shape[0], -1))
        for i in (1, 2, 3):
            layer = p["classifier"][f"fc{i}"]
            x = keep(f"classifier.fc{i}", x @ layer["weight"] + layer["bias"])
            if i < 3:
                x = keep(f"classifier.relu{i}", jax.nn.relu(x))
        return cross_entropy(x, data["labels"])


# --- GPT-2, called as Turnpoint's own -------------------------------------------------------------------------------


def attended(name, q, k, v):
    """q (batch, head, group, sequence, channel), keys and values without groups; causal."""
    group = "" if q.ndim == 4 else "group "
    letters = "bh" if q.ndim == 4 else "bhg"
    scores = jnp.einsum(f"{letters}sd,bhtd->{letters}st", q, k) / math.sqrt(q.shape[-1])
    scores = keep(f"{name}.scores", scores, f"batch head {group}sequence key_sequence")
    seen = jnp.arange(q.shape[-2])[:, None] >= jnp.arange(k.shape[-2])[None, :]
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e30), axis=-1)
    weights = keep(f"{name}.softmax", weights, f"batch head {group}sequence key_sequence")
    context = jnp.einsum(f"{letters}st,bhtd->{letters}sd", weights, v)
    return keep(f"{name}.context", context, f"batch head {group}sequence head_channel")


class Gpt2:
    def __init__(self, batch, sequence, config):
        c, words = config["n_embd"], config["vocab_size"]
        self.layers, self.heads = config["n_layer"], config["n_head"]
        self.shapes = {"embed.tokens.weight": (words, c), "embed.positions.weight": (config["n_positions"], c)}
        for l in range(self.layers):
            at = f"layer{l}."
            for norm in ("attention.norm", "mlp.norm"):
                self.shapes |= {at + norm + ".weight": (c,), at + norm + ".bias": (c,)}
            for name in ("q", "k", "v", "out"):
                self.shapes |= {f"{at}attention.{name}.weight": (c, c), f"{at}attention.{name}.bias": (c,)}
            self.shapes |= {at + "mlp.up.weight": (c, 4 * c), at + "mlp.up.bias": (4 * c,)}
            self.shapes |= {at + "mlp.down.weight": (4 * c, c), at + "mlp.down.bias": (c,)}
        self.shapes |= {"head.norm.weight": (c,), "head.norm.bias": (c,)}
        self.data = {"tokens": ((batch, sequence), words), "labels": ((batch, sequence), words)}

    def norm(self, name, p, x):
        x = x - jnp.mean(x, axis=-1, keepdims=True)
        x = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)
        return keep(name, x * p["weight"] + p["bias"])

    def loss(self, p, data):
        table = p["embed"]["tokens"]["weight"]
        x = keep("embed.tokens", table[data["tokens"]])
        positions = keep("embed.positions", p["embed"]["positions"]["weight"][: x.shape[1]])
        x = keep("embed.add", x + positions)
        for l in range(self.layers):
            layer, at = p[f"layer{l}"], f"layer{l}."
            h = self.norm(at + "attention.norm", layer["attention"]["norm"], x)
            q, k, v = (self.heads_of(at, layer, name, h) for name in ("q", "k", "v"))
            h = attended(at + "attention", q, k, v).transpose(0, 2, 1, 3).reshape(x.shape)
            out = layer["attention"]["out"]
            x = keep(at + "attention.add", x + keep(at + "attention.out", h @ out["weight"] + out["bias"]))
            h = self.norm(at + "mlp.norm", layer["mlp"]["norm"], x)
            up, down = layer["mlp"]["up"], layer["mlp"]["down"]
            h = keep(at + "mlp.act", jax.nn.gelu(keep(at + "mlp.up", h @ up["weight"] + up["bias"])))
            x = keep(at + "mlp.add", x + keep(at + "mlp.down", h @ down["weight"] + down["bias"]))
        x = self.norm("head.norm", p["head"]["norm"], x)
        return cross_entropy(keep("head.logits", x @ table.T), data["labels"])

    def heads_of(self, at, layer, name, h):
        held = layer["attention"][name]
        made = (h @ held["weight"] + held["bias"]).reshape(*h.shape[:2], self.heads, -1)
        return keep(f"{at}attention.{name}", made, "batch sequence head head_channel").transpose(0, 2, 1, 3)


# --- Llama, called as in Transformers --------------------------------------------------------------------------------


class Llama:
    def __init__(self, batch, sequence, config):
        self.config = config
        c, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
        self.heads, self.groups = config["num_attention_heads"], config["num_key_value_heads"]
        own = c // self.heads
        self.shapes = {"model.embed_tokens.embedding": (words, c)}
        for l in range(config["num_hidden_layers"]):
            at = f"model.layers.{l}."
            self.shapes[at + "input_layernorm.weight"] = (c,)
            for name, columns in (("q", self.heads), ("k", self.groups), ("v", self.groups)):
                self.shapes[f"{at}self_attn.{name}_proj.kernel"] = (c, columns * own)
            self.shapes[at + "self_attn.o_proj.kernel"] = (c, c)
            self.shapes[at + "post_attention_layernorm.weight"] = (c,)
            for name, shape in (("gate", (c, inner)), ("up", (c, inner)), ("down", (inner, c))):
                self.shapes[f"{at}mlp.{name}_proj.kernel"] = shape
        self.shapes |= {"model.norm.weight": (c,)}
        if not config.get("tie_word_embeddings", False):
            self.shapes["lm_head.kernel"] = (c, words)
        self.data = {"tokens": ((batch, sequence), words), "labels": ((batch, sequence), words)}

    def norm(self, name, p, x):
        return keep(name, x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * p["weight"])

    def rotated(self, x):
        """Of (batch, sequence, head, channel)."""
        half = x.shape[-1] // 2
        angles = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None] * 1e4 ** (-jnp.arange(half, dtype=jnp.float32) / half)
        cos, sin = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
        a, b = x[..., :half], x[..., half:]
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def loss(self, p, data):
        body = p["model"]
        x = keep("model.embed_tokens", body["embed_tokens"]["embedding"][data["tokens"]])
        for l in range(self.config["num_hidden_layers"]):
            layer, at = body["layers"][str(l)], f"model.layers.{l}."
            h = self.norm(at + "input_layernorm", layer["input_layernorm"], x)
            own = layer["self_attn"]
            q = self.rotated(self.split(h, own["q_proj"]["kernel"], self.heads))
            q = q.reshape(*q.shape[:2], self.groups, -1, q.shape[-1])
            q = keep(at + "self_attn.q_proj", q, "batch sequence head group head_channel").transpose(0, 2, 3, 1, 4)
            k = self.rotated(self.split(h, own["k_proj"]["kernel"], self.groups))
            k = keep(at + "self_attn.k_proj", k, "batch sequence head head_channel").transpose(0, 2, 1, 3)
            v = self.split(h, own["v_proj"]["kernel"], self.groups)
            v = keep(at + "self_attn.v_proj", v, "batch sequence head head_channel").transpose(0, 2, 1, 3)
            h = attended(at + "attention", q, k, v).transpose(0, 3, 1, 2, 4).reshape(x.shape)
            h = keep(at + "self_attn.o_proj", h @ own["o_proj"]["kernel"])
            x = keep(at + "attention.add", x + h)
            h = self.norm(at + "post_attention_layernorm", layer["post_attention_layernorm"], x)
            gate = keep(at + "mlp.gate_proj", h @ layer["mlp"]["gate_proj"]["kernel"])
            up = keep(at + "mlp.up_proj", h @ layer["mlp"]["up_proj"]["kernel"])
            h = keep(at + "mlp.act", jax.nn.silu(gate) * up)
            x = keep(at + "mlp.add", x + keep(at + "mlp.down_proj", h @ layer["mlp"]["down_proj"]["kernel"]))
        x = self.norm("model.norm", body["norm"], x)
        head = p["lm_head"]["kernel"] if "lm_head" in p else body["embed_tokens"]["embedding"].T
        return cross_entropy(keep("lm_head", x @ head), data["labels"])

    def split(self, h, kernel, heads):
        return (h @ kernel).reshape(*h.shape[:2], heads, -1)


MODELS = {"mlp": Mlp, "lenet": LeNet, "gpt2": Gpt2, "llama": Llama, "block": Llama}


# --- a step -------------------------------------------------------------------------------------------------------------


def drawn(model):
    random = np.random.default_rng(1)
    draw = lambda shape: random.standard_normal(shape).astype(np.float32) * 0.3
    flat = {name: draw(shape) for name, shape in model.shapes.items()}
    # No gradient by itself decides a step: second moments begin above zero.
    second = {name: random.uniform(0.5, 1, shape).astype(np.float32) for name, shape in model.shapes.items()}
    first = {name: np.zeros(shape, np.float32) for name, shape in model.shapes.items()}
    data = {
        name: draw(shape) if bound is None else random.integers(0, bound, shape).astype(np.int64)
        for name, (shape, bound) in model.data.items()
    }
    return nested(flat), {"mu": nested(first), "nu": nested(second)}, data


def adam(gradients, state, parameters):
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], gradients)
    nu = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["nu"], gradients)
    new = jax.tree.map(lambda p, m, v: p - 0.1 * m / (jnp.sqrt(v) + 1e-8), parameters, mu, nu)
    return new, {"mu": mu, "nu": nu}


def plain(model):
    def step(parameters, state, data):
        value, gradients = jax.value_and_grad(model.loss)(parameters, data)
        new, state = adam(gradients, state, parameters)
        return value, new, state

    return step


def annotated(model, plan):
    def loss(parameters, data):
        return model.loss(plan.read(parameters), data)

    def step(parameters, state, data):
        value, gradients = jax.value_and_grad(loss)(parameters, data)
        new, state = adam(plan.cut(plan.summed(gradients)), state, plan.cut(parameters))
        return value, plan.cut(new), state

    return step


def main():
    global keep
    spec = importlib.util.spec_from_file_location("plan", sys.argv[1])
    plan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plan)
    words = sys.argv[6:]
    config = json.load(open(words[0])) if words and not words[0].startswith("--") else {}
    model = MODELS[sys.argv[3]](int(sys.argv[4]), int(sys.argv[5]), config)
    if "--rename" in words:
        old, new = words[words.index("--rename") + 1].split("=")
        model.shapes = {new if name == old else name: shape for name, shape in model.shapes.items()}
    if "--table" in words:
        print(json.dumps(model.shapes))
        return
    parameters, state, data = drawn(model)
    want = jax.device_get(jax.jit(plain(model))(parameters, state, data))
    try:
        lies = plan.parameter_shardings(parameters), plan.state_shardings(state, parameters)
    except ValueError as error:
        print(json.dumps({"refused": str(error)}))
        return
    fed = {name: plan.data_sharding(name) for name in data}
    keep = plan.constrain
    step = jax.jit(annotated(model, plan), in_shardings=(*lies, fed), out_shardings=(None, *lies))
    compiled = step.lower(parameters, state, data).compile()
    placed = jax.device_put((parameters, state, data), (*lies, fed))
    got = jax.device_get(compiled(*placed))
    far = {"loss": abs(float(got[0]) - float(want[0])) / abs(float(want[0]))}
    for what, ours, theirs in (
        ("weight", got[1], want[1]),
        ("gradient", got[2]["mu"], want[2]["mu"]),
        ("second state", got[2]["nu"], want[2]["nu"]),
    ):
        leaves = {plan.dotted(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(theirs)[0]}
        largest = {}  # in one module: a key's bias has no gradient but rounding
        for name, leaf in leaves.items():
            module = name.rpartition(".")[0]
            largest[module] = max(largest.get(module, 1e-30), float(np.max(np.abs(leaf))))
        for path, leaf in jax.tree_util.tree_flatten_with_path(ours)[0]:
            name = plan.dotted(path)
            apart = float(np.max(np.abs(leaf - leaves[name])))
            far[f"{what} {name}"] = apart / largest[name.rpartition(".")[0]]
    local = lambda tree: sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree))
    print(
        json.dumps(
            {
                "collectives": collectives_of(compiled.as_text(), int(sys.argv[2])),
                "argument_bytes": compiled.memory_analysis().argument_size_in_bytes,
                "weight_bytes": local(placed[0]),
                "state_bytes": local(placed[1]),
                "data_bytes": local(placed[2]),
                "apart": far,
                "unnamed": plan.unconstrained(),
                "rules": plan.RULES,
            }
        )
    )


if __name__ == "__main__":
    main()
