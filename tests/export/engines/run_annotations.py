# SPDX-License-Identifier: Apache-2.0
"""Lays a model of Transformers out by an exported file, on ranks that only pretend, and prints what it then does.

run_annotations.py FILE CONFIG RANKS BATCH SEQUENCE: a JSON object with every collective of a step (kind, ranks, bytes of
the whole message) of forward and of backward, and the bytes of weights that a rank holds.
With `train` behind it, ranks are processes that talk: how far two steps are from those of the model in one piece.
"""

import importlib.util
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import loss_parallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModelForCausalLM

KINDS = {
    "all_reduce": "all_reduce",
    "allreduce_": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "_allgather_base_": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
    "broadcast_": "broadcast",
    "all_to_all_single": "all_to_all",
}


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.rows = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        namespace, name = str(function).split(".")[:2]
        if "c10d" in namespace and "wait" not in name and "wrap" not in name:
            leaves = tree_leaves((args, out))
            if name not in KINDS:
                raise RuntimeError(f"a collective that nobody expects: {function}")
            ranks = 0
            for leaf in leaves:
                if isinstance(leaf, str) and leaf not in ("sum", "avg", "max", "min"):
                    ranks = dist.distributed_c10d._resolve_process_group(leaf).size()
                elif isinstance(leaf, torch.ScriptObject) and "ProcessGroup" in str(leaf._type()):
                    ranks = dist.ProcessGroup.unbox(leaf).size()
            size = max(t.numel() * t.element_size() for t in leaves if isinstance(t, torch.Tensor))
            self.rows.append([KINDS[name], ranks, size])
        return out


def loaded(path):
    spec = importlib.util.spec_from_file_location("plan", path)
    plan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plan)
    return plan


def made(config_path):
    config = AutoConfig.from_pretrained(config_path)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    return config, AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def steps_of(model, loss, tokens):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    values = []
    for _ in range(2):
        optimizer.zero_grad()
        with loss_parallel():
            value = loss(model(input_ids=tokens, use_cache=False).logits, tokens)
            value.backward()
        optimizer.step()
        values.append((value.full_tensor() if isinstance(value, DTensor) else value).detach().clone())
    return torch.stack(values)


def train(rank, path, config_path, ranks, batch, sequence, out):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks, init_method=f"file://{out}.meet")
    plan = loaded(path)
    config, whole = made(config_path)
    model = made(config_path)[1]
    mesh = plan.make_mesh("cpu")
    model = plan.parallelize(model, mesh)
    tokens = torch.randint(0, config.vocab_size, (batch, sequence), generator=torch.Generator().manual_seed(1))
    groups = plan.MESH["replicate"] * plan.MESH["shard"]
    mine = tokens.chunk(groups)[rank // plan.MESH["tensor"]]
    ours = steps_of(model, plan.loss, mine)
    dist.all_reduce(ours)
    ours /= ranks
    theirs = steps_of(whole, plan.loss, tokens)
    full = {
        name.replace("_checkpoint_wrapped_module.", ""): p.full_tensor() if isinstance(p, DTensor) else p
        for name, p in model.named_parameters()
    }
    far = max((full[name] - p).abs().max().item() for name, p in whole.named_parameters())
    if rank == 0:
        with open(out, "w") as file:
            json.dump({"loss": (ours - theirs).abs().max().item(), "weights": far, "steps": theirs.tolist()}, file)
    dist.destroy_process_group()


def main():
    path, config_path, ranks, batch, sequence = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if sys.argv[6:] == ["train"]:
        out = path + ".trained"
        for old in (out, out + ".meet"):  # of a run before
            if os.path.exists(old):
                os.remove(old)
        torch.multiprocessing.spawn(train, (path, config_path, ranks, batch, sequence, out), nprocs=ranks)
        with open(out) as file:
            answer.write(file.read())
        return
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    plan = loaded(path)
    config, model = made(config_path)
    said = None
    try:
        model = plan.parallelize(model, plan.make_mesh("cpu"))
    except RuntimeError as error:
        said = str(error)
    result = {"refused": said}
    if said is None:
        tokens = torch.randint(0, config.vocab_size, (batch, sequence))
        with Log() as forward:
            logits = model(input_ids=tokens, use_cache=False).logits
            with loss_parallel():
                value = plan.loss(logits, tokens)
        with Log() as backward:
            with loss_parallel():
                value.backward()
        local = sum((p.to_local() if isinstance(p, DTensor) else p).numel() * 4 for p in model.parameters())
        result.update(forward=forward.rows, backward=backward.rows, bytes=local)
    json.dump(result, answer)


if __name__ == "__main__":
    main()
