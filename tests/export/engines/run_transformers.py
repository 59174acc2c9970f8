# SPDX-License-Identifier: Apache-2.0
"""Trains a model of Transformers that an exported file distributes, on processes that talk (gloo), for two steps, and
prints as JSON how far loss and weights are from those of the model in one piece, the collectives of a step (kind, ranks,
bytes of the whole message), and the bytes of weights that a rank holds.

run_transformers.py FILE CONFIG RANKS BATCH SEQUENCE
"""

import json
import os
import socket
import sys
import tempfile

from run_annotations import Log, loaded, made

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from transformers import AutoModelForCausalLM


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def train(rank, path, folder, ranks, port, batch, sequence, out):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    plan = loaded(path)
    how = {"dtype": torch.float32, "attn_implementation": "eager"}
    try:
        model = plan.load(folder, **how)
    except RuntimeError as error:
        if rank == 0:
            json.dump({"refused": str(error)}, open(out, "w"))
        return
    single = AutoModelForCausalLM.from_pretrained(folder, **how)
    model.train(), single.train()
    tokens = torch.randint(0, single.config.vocab_size, (batch, sequence), generator=torch.Generator().manual_seed(1))
    groups = plan.SIZES["fsdp_size"] * plan.SIZES["dp_replicate_size"]
    mine = tokens.chunk(groups)[rank // plan.SIZES["tp_size"]]
    optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-4, foreach=False) for each in (model, single)]
    losses, rows = [], []
    for _ in range(2):
        for optimizer in optimizers:
            optimizer.zero_grad()
        with Log() as log:
            value = model(input_ids=mine, labels=mine, use_cache=False).loss
        with Log() as back:
            value.backward()
        rows = log.rows + back.rows
        wanted = single(input_ids=tokens, labels=tokens, use_cache=False).loss
        wanted.backward()
        for optimizer in optimizers:
            optimizer.step()
        value = whole(value).detach().clone()
        dist.all_reduce(value)
        losses.append([value.item() / ranks, wanted.item()])
    far = max((whole(p) - q).abs().max().item() for p, q in zip(model.parameters(), single.parameters(), strict=True))
    local = sum((p.to_local() if isinstance(p, DTensor) else p).numel() * 4 for p in model.parameters())
    if rank == 0:
        json.dump({"losses": losses, "weights": far, "rows": rows, "bytes": local}, open(out, "w"))
    dist.destroy_process_group()


def main():
    path, config_path, ranks, batch, sequence = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        made(config_path)[1].save_pretrained(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        out = os.path.join(folder, "trained.json")
        torch.multiprocessing.spawn(train, (path, folder, ranks, port, batch, sequence, out), nprocs=ranks)
        answer.write(open(out).read())


if __name__ == "__main__":
    main()
