// SPDX-License-Identifier: Apache-2.0
#include "core/validation/engine/engine_parts.h"

namespace turnpoint {

std::string_view pytorch_part() {
  return R"py(progress("loading PyTorch")
try:
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.parallel import loss_parallel
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
except Exception as error:  # of another version, or without a library of the system
    say("error", what=f"{sys.executable} cannot load PyTorch: {error}")
    leave()

KINDS = {
    "all_reduce": "all_reduce",
    "all_reduce_": "all_reduce",
    "allreduce_": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_out": "all_gather",
    "_allgather_base_": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
    "broadcast": "broadcast",
    "broadcast_": "broadcast",
    "all_to_all_single": "all_to_all",
    "alltoall_base_": "all_to_all",
}
REDUCTIONS = ("sum", "avg", "max", "min", "product")


class Log(TorchDispatchMode):
    """Every collective of this rank: kind, ranks and bytes of the whole message."""

    def __init__(self):
        super().__init__()
        self.rows = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        namespace, name = str(function).split(".")[:2]
        if "c10d" in namespace and not any(word in name for word in ("wait", "wrap", "barrier")):
            leaves, ranks = tree_leaves((args, kwargs, out)), []
            for leaf in leaves:
                if isinstance(leaf, str) and leaf not in REDUCTIONS:
                    ranks = dist.get_process_group_ranks(dist.distributed_c10d._resolve_process_group(leaf))
                elif isinstance(leaf, torch.ScriptObject) and "ProcessGroup" in str(leaf._type()):
                    ranks = dist.get_process_group_ranks(dist.ProcessGroup.unbox(leaf))
            sizes = lambda tree: [t.numel() * t.element_size() for t in tree if isinstance(t, torch.Tensor)]
            whole = max(sizes(leaves), default=0)
            if "coalesced" in name:  # several messages as one
                whole = max(sum(sizes(tree_leaves((args, kwargs)))), sum(sizes(tree_leaves(out))))
            if len(ranks) > 1:
                row = self.rows.setdefault((KINDS.get(name, name), tuple(ranks)), [0, 0])
                row[0] += 1
                row[1] += received(KINDS.get(name, name), len(ranks), whole)
        return out


def received(kind, ranks, whole):
    """Of a message, what one rank gets from others; sums come back, so twice."""
    return (2 if kind == "all_reduce" else 1) * whole * (ranks - 1) / ranks


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def own_parts(tensors):
    """What this rank holds of them."""
    return [t.to_local() if isinstance(t, DTensor) else t for t in tensors if isinstance(t, torch.Tensor)]


def bytes_of(tensors):
    """Of their elements; a tensor that is there twice counts once."""
    return sum({t.data_ptr(): t.numel() * t.element_size() for t in own_parts(tensors)}.values())


def bytes_behind(tensors):
    """Of the memory that they lie in, which is more where they are parts of something larger."""
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in own_parts(tensors)}.values())


def made():
    """The model in one piece, the same on every rank."""
    torch.manual_seed(JOB["seed"])
    if "function" in JOB:
        module = loaded("model_code", JOB["file"])
        function = getattr(module, JOB["function"], None)
        if not callable(function):
            raise Refused(f"{JOB['file']} has no function {JOB['function']}()")
        model = function()
        if not isinstance(model, torch.nn.Module):
            raise Refused(f"{JOB['function']}() of {JOB['file']} returns no torch.nn.Module")
        return model
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(JOB["config"])
    config._attn_implementation = JOB["attention"]
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def logits_of(model, inputs):
    if "function" in JOB:
        out = model(*inputs)
    else:
        out = model(input_ids=inputs[0], use_cache=False)
    return getattr(out, "logits", out)


def drawn():
    """The data of a whole step: what the model reads, and the labels."""
    random = torch.Generator().manual_seed(JOB["seed"] + 1)
    inputs, labels = [], None
    for data in JOB["data"]:
        if data["below"] > 0:
            values = torch.randint(0, data["below"], data["shape"], generator=random)
        else:
            values = torch.randn(data["shape"], generator=random)
        if data["labels"]:
            labels = values
        else:
            inputs.append(values)
    return inputs, labels


class Step:
    """Steps of a model: those that the plan lays out see the part of the data that is their rank's."""

    def __init__(self, plan, model, data, device, cut):
        groups = plan.MESH["replicate"] * plan.MESH["shard"] if cut else 1
        mine = RANK // plan.MESH["tensor"] if cut else 0
        own = lambda values: values.chunk(groups)[mine].to(device).chunk(plan.MICRO_BATCHES)
        self.plan, self.model = plan, model
        self.inputs, self.labels = list(zip(*[own(values) for values in data[0]])), own(data[1])
        # Gradients of replicas are summed once, behind the last part of the batch.
        self.once = cut and groups > 1 and plan.MESH["shard"] == 1 and plan.MICRO_BATCHES > 1

    def gradients(self):
        total = 0
        for part, (inputs, labels) in enumerate(zip(self.inputs, self.labels)):
            if self.once:
                self.model.set_requires_gradient_sync(part + 1 == len(self.labels))
            with loss_parallel():
                value = self.plan.loss(logits_of(self.model, inputs), labels) / len(self.labels)
                value.backward()
            total = total + whole(value.detach())
        return total

    def train(self, optimizer):
        optimizer.zero_grad()
        value = self.gradients()
        optimizer.step()
        return value


def mean_loss(value):
    """Over all ranks: those of one tensor group have the same."""
    value = value.detach().float().clone()
    dist.all_reduce(value)
    return value.item() / RANKS


def far(ours, theirs):
    """Relative to the largest element. A gradient that only one of the two has is further off than any number."""
    if ours is None or theirs is None:
        return 0.0 if ours is theirs else math.inf
    largest = theirs.abs().max().item()
    apart = (ours.float() - theirs).abs().max().item()
    apart = apart / largest if largest > 0 else apart
    return math.inf if math.isnan(apart) else apart


def prove(plan, mesh, data, device):
    """The plan's loss and gradients beside those of the model in one piece, in fp32 and without dropout."""
    precision, plan.PRECISION = plan.PRECISION, MixedPrecisionPolicy()
    model = plan.parallelize(made(), mesh).to(device).eval()
    plan.PRECISION = precision
    ours = mean_loss(Step(plan, model, data, device, True).gradients())
    theirs, found = None, None
    if RANK == 0:
        single = made().to(device).eval()
        theirs = Step(plan, single, data, device, False).gradients().item()
        found = {name: p.grad for name, p in single.named_parameters()}
    error, where = 0.0, ""
    for name, parameter in model.named_parameters():
        gradient = None if parameter.grad is None else whole(parameter.grad)
        if RANK != 0:
            continue
        name = name.replace("_checkpoint_wrapped_module.", "")
        apart = far(gradient, found[name])
        if not apart <= error:
            error, where = apart, name
    if RANK != 0:
        return None
    return {
        "loss_error": abs(ours - theirs) / max(abs(theirs), 1e-30),
        "gradient_error": error,
        "where": where,
        "precision": "fp32",
    }


def optimizer_of(model):
    parameters, rate = list(model.parameters()), 1e-4
    if JOB["optimizer"] == "adam":
        return torch.optim.Adam(parameters, lr=rate)
    return torch.optim.SGD(parameters, lr=rate, momentum=0.9 if JOB["optimizer"] == "momentum" else 0)


def peak_of_step(train, held, device):
    """The most bytes that tensors of this rank have at a time, as PyTorch's own allocator counts them."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        train()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    from torch._C._profiler import _EventType

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        train()
    found, left = [], list(profile.profiler.kineto_results.experimental_event_tree())
    while left:
        event = left.pop()
        left.extend(event.children)
        if event.tag == _EventType.Allocation:
            found.append((event.start_time_ns, event.extra_fields.alloc_size))
    now = most = 0
    for _, size in sorted(found, key=lambda one: one[0]):
        now += size
        most = max(most, now)
    return held() + most


def gathered(value):
    """Of all ranks, on every one of them."""
    values = [None] * RANKS
    dist.all_gather_object(values, value)
    return values


def device_of():
    if JOB["backend"] != "cpu" and torch.cuda.is_available() and torch.cuda.device_count() > LOCAL:
        torch.cuda.set_device(LOCAL)
        return torch.device("cuda", LOCAL)
    if JOB["backend"] == "cuda":
        raise Refused(f"rank {RANK} has no GPU of its own: PyTorch sees {torch.cuda.device_count()} on its host")
    return torch.device("cpu")


def meet(device):
    backend = "nccl" if device.type == "cuda" else "gloo"
    where = "env://" if "MASTER_ADDR" in os.environ else "file://" + os.path.join(FOLDER, "meet")
    dist.init_process_group(backend, init_method=where, rank=RANK, world_size=RANKS)


def run():
    if RANKS != JOB["devices"]:
        raise Refused(f"the launcher started {RANKS} processes, and the plan is for {JOB['devices']} devices")
    device = device_of()
    if device.type == "cpu" and 0 < JOB["most_cpu_ranks"] < RANKS:
        raise Refused(
            f"rank {RANK} has no GPU, and without --launcher at most {JOB['most_cpu_ranks']} processes are started on "
            "the processors of this machine"
        )
    meet(device)
    kinds = {one[0] for one in gathered((device.type, LOCAL))}
    if len(kinds) > 1:
        raise Refused("some ranks have a GPU and some have none: --backend cpu runs all on processors")
    plan = loaded("plan", os.path.join(FOLDER, "plan.py"))
    mesh, data, notes = plan.make_mesh(device.type), drawn(), []
    numerics = None
    if JOB["prove"]:
        progress("proof")
        try:
            numerics = prove(plan, mesh, data, device)
        except torch.OutOfMemoryError:
            raise Refused("the model in one piece does not fit on a device: --no-proof leaves the proof out")
    progress("making the model")
    model = plan.parallelize(made(), mesh).to(device).train()
    optimizer, step, losses = optimizer_of(model), Step(plan, model, data, device, True), []
    train = lambda: losses.append(step.train(optimizer))
    for number in range(JOB["warm_up"]):
        progress("warm-up", number / JOB["warm_up"])
        train()
    progress("collectives")
    with Log() as log:
        train()
    progress("memory")
    states = lambda: tree_leaves(optimizer.state)
    fed = [*model.buffers(), *step.labels, *tree_leaves(step.inputs)]
    optimizer.zero_grad()
    peak = peak_of_step(train, lambda: bytes_behind([*model.parameters(), *states(), *fed]), device)
    notes.append("the peak is of tensors, as PyTorch's allocator counts them; what libraries have is beside it")
    memory = {
        "parameters": bytes_of(model.parameters()),
        "gradients": bytes_of([p.grad for p in model.parameters()]),
        "optimizer": bytes_of(states()),
        "peak": peak,
    }
    times, began = [], time.monotonic()
    while len(times) < JOB["steps"]:
        progress("steps", len(times) / JOB["steps"])
        # Whether the budget is used up is for one of them to say.
        over = torch.tensor([float(time.monotonic() - began > JOB["budget_s"] and len(times) >= 3)], device=device)
        dist.broadcast(over, 0)
        if over.item():
            break
        dist.barrier()
        start = time.perf_counter()
        train()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    told = [mean_loss(value) for value in losses]
    cores = len(os.sched_getaffinity(0))
    all_ranks = gathered((times, memory, sorted(log.rows.values()), os.uname().nodename, cores))
    dist.destroy_process_group()
    if RANK != 0:
        return
    if any(one[2] != all_ranks[0][2] for one in all_ranks):
        notes.append("ranks did not all exchange the same: collectives are those of rank 0")
    say(
        "result",
        engine=f"pytorch {torch.__version__}",
        backend=device.type,
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else "",
        ranks=RANKS,
        cores=RANKS if device.type == "cuda" else sum({one[3]: one[4] for one in all_ranks}.values()),
        times_s=[max(each) for each in zip(*[one[0] for one in all_ranks])],
        losses=told,
        memory={part: max(one[1][part] for one in all_ranks) for part in memory},
        collectives=[
            {"kind": kind, "ranks": list(ranks), "count": count, "bytes": size}
            for (kind, ranks), (count, size) in sorted(log.rows.items())
        ],
        numerics=numerics,
        notes=notes,
    )
)py";
}

}  // namespace turnpoint
