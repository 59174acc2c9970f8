#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole training steps of PyTorch on one GPU, for comparison with what turnpoint-cli predicts of the same model.

    torch_steps.py CASES.json OUT.jsonl                                     on the machine with the GPU
    torch_steps.py --compare OUT.jsonl TURNPOINT_CLI HARDWARE CONFIGS       anywhere: a table of both, in Markdown

CASES.json is a list of {"name", "config" (a Hugging Face config.json, by its path in the folder CONFIGS, which on the GPU
is a variable of the environment) or "vision" (a network of torchvision), "batch", "sequence", "precision" (fp32, tf32 or
bf16), "set" (keys of the config to change), "compile" (torch.compile)}. A line of OUT.jsonl has the median and the
shortest of eight steps in seconds, the peak of memory in bytes (what tensors held, and what the allocator held), and the
kernels that took longest.

bf16 means what Turnpoint means by it: weights, gradients and activations in 2 bytes; Adam's moments and a master copy
of the weights in 4.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

if "--compare" not in sys.argv:
    import torch

WARM_UP, STEPS = 3, 8


class Update:
    """Adam; of 2-byte weights over a copy in 4 bytes, a bucket of gradients widened at a time."""

    BUCKET = 1 << 25

    def __init__(self, model):
        self.weights = [p for p in model.parameters() if p.requires_grad]
        halves = any(p.dtype != torch.float32 for p in self.weights)
        self.masters = [p.detach().float() for p in self.weights] if halves else self.weights
        self.buckets, size = [[]], 0
        for place, weight in enumerate(self.weights):
            if size > self.BUCKET and halves:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(place)
            size += weight.numel()
        self.halves = halves
        self.adams = [torch.optim.AdamW([self.masters[i] for i in b], lr=1e-4, fused=True) for b in self.buckets]

    def __call__(self):
        for bucket, adam in zip(self.buckets, self.adams):
            if self.halves:
                for i in bucket:
                    grad = self.weights[i].grad
                    self.masters[i].grad = None if grad is None else grad.float()
            adam.step()
            if self.halves:
                with torch.no_grad():
                    torch._foreach_copy_([self.weights[i] for i in bucket], [self.masters[i] for i in bucket])
                adam.zero_grad(set_to_none=True)
        for weight in self.weights:
            weight.grad = None


def language(case, dtype):
    import transformers
    with open(os.path.join(os.environ.get("CONFIGS", "."), case["config"])) as file:
        given = json.load(file)
    given.update(case.get("set", {}))
    for key in ("torch_dtype", "dtype", "quantization_config", "auto_map"):
        given.pop(key, None)
    kind = given.pop("model_type")
    config = transformers.AutoConfig.for_model(kind, **given)
    config.use_cache = False
    head = {"bert": transformers.AutoModelForMaskedLM, "t5": transformers.AutoModelForSeq2SeqLM}.get(
        kind, transformers.AutoModelForCausalLM)
    torch.set_default_dtype(dtype)
    attention = "sdpa"
    try:
        with torch.device("cuda"):
            model = head.from_config(config, attn_implementation="sdpa")
    except ValueError:
        attention = "eager"
        with torch.device("cuda"):
            model = head.from_config(config, attn_implementation="eager")
    torch.set_default_dtype(torch.float32)
    model = model.to(dtype)
    model.train()
    words = torch.randint(0, config.vocab_size, (case["batch"], case["sequence"]), device="cuda")
    labels = torch.randint(0, config.vocab_size, (case["batch"], case["sequence"]), device="cuda")
    return model, lambda: model(input_ids=words, labels=labels).loss, {"attention": attention}


def vision(case, dtype):
    import torchvision
    model = getattr(torchvision.models, case["vision"])(weights=None).cuda().to(dtype)
    layout = torch.channels_last if dtype == torch.bfloat16 else torch.contiguous_format
    model = model.to(memory_format=layout)
    model.train()
    side = case.get("side", 224)
    images = torch.randn(case["batch"], 3, side, side, device="cuda", dtype=dtype).to(memory_format=layout)
    labels = torch.randint(0, 1000, (case["batch"],), device="cuda")
    loss = torch.nn.CrossEntropyLoss()
    return model, lambda: loss(model(images).float(), labels), {"layout": str(layout)}


def kernels(step):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    spent = [(e.key, getattr(e, "self_device_time_total", 0), e.count) for e in seen.key_averages()]
    spent.sort(key=lambda one: -one[1])
    return {"busy_s": sum(t for _, t, _ in spent) * 1e-6, "launches": sum(n for _, _, n in spent),
            "longest": [{"kernel": k[:160], "s": t * 1e-6, "launches": n} for k, t, n in spent[:40]]}


def run(case):
    precision = case["precision"]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    torch.manual_seed(1)
    model, forward, about = (vision if "vision" in case else language)(case, dtype)
    if case.get("compile"):
        forward = torch.compile(forward)
    update = Update(model)
    parameters = sum(p.numel() for p in model.parameters())

    def step():
        forward().backward()
        update()

    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(STEPS + 1)]
    begun = time.perf_counter()
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    wall = (time.perf_counter() - begun) / STEPS
    times = sorted(a.elapsed_time(b) * 1e-3 for a, b in zip(marks, marks[1:]))
    result = {**case, **about, "parameters": parameters, "step_s": times[STEPS // 2], "least_s": times[0],
              "wall_s": wall, "allocated_bytes": torch.cuda.max_memory_allocated(),
              "reserved_bytes": torch.cuda.max_memory_reserved()}
    result.update(kernels(step))
    return result


def predicted(case, program, hardware, configs):
    """The fastest plan for one device that runs nothing again and keeps all on it, as the steps above do."""
    with tempfile.TemporaryDirectory() as folder:
        model = "builtin:" + case.get("vision", "")
        if "config" in case:
            with open(os.path.join(configs, case["config"])) as file:
                config = {**json.load(file), **case.get("set", {})}
            model = os.path.join(folder, "config.json")
            with open(model, "w") as file:
                json.dump(config, file)
        out = os.path.join(folder, "result.json")
        command = [program, "search", model, "--hardware", hardware, "--devices", "1", "--batch", str(case["batch"]),
                   "--precision", "fp32" if case["precision"] == "tf32" else case["precision"], "--simulate",
                   "--kernels", "fused" if case.get("compile") else "eager",
                   "--without", "recompute,offload,update-sharding", "--out", out]
        if "sequence" in case:
            command += ["--sequence", str(case["sequence"])]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        with open(out) as file:
            return min(json.load(file)["points"], key=lambda point: point["time_s"])


def beside(value, measured, unit, name):
    cells = [f"{value / unit:.1f} {name}"]
    for other in measured:
        cells += [f"{other / unit:.1f} {name}", f"{100 * (value / other - 1):+.1f} %"]
    return cells


def compare(steps, program, hardware, configs):
    print("| step | predicted | measured | error | GPU busy | error | peak predicted | peak measured | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    with open(steps) as file:
        for case in map(json.loads, file):
            if "error" in case or case["precision"] == "tf32":
                continue
            point = predicted(case, program, hardware, configs)
            time_s, peak = point["simulated_time_s"], point["simulated_memory_bytes"]
            cells = [case["name"]] + beside(time_s, [case["step_s"], case["busy_s"]], 1e-3, "ms")
            cells += beside(peak, [case["allocated_bytes"]], 1e9, "GB")
            print("| " + " | ".join(cells) + " |")


def main():
    if sys.argv[1] == "--compare":
        return compare(*sys.argv[2:])
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    with open(sys.argv[2], "a") as out:
        for case in cases:
            try:
                result = run(case)
            except Exception as problem:  # the other cases are still worth their time
                result = {**case, "error": f"{type(problem).__name__}: {problem}"[:600]}
            result.update({"device": torch.cuda.get_device_name(), "torch": torch.__version__})
            print(json.dumps(result), file=out, flush=True)
            shown = {key: result[key] for key in ("step_s", "allocated_bytes", "error") if key in result}
            print(case["name"], shown, flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
