# SPDX-License-Identifier: Apache-2.0
"""Hands files that were exported for an engine to that engine's own classes, and prints what they make of them.

check_files.py ENGINE DEVICES FILE...: a JSON object, by file either what was understood or {"refused": why}.
"""

import importlib.util
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")


def loaded(path):
    spec = importlib.util.spec_from_file_location("plan", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def megatron(path, devices):
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    from megatron.core.transformer.enums import LayerType

    config = loaded(path).transformer_config()
    stages = config.pipeline_model_parallel_size
    runs = config.virtual_pipeline_model_parallel_size or 1
    group = config.tensor_model_parallel_size * config.context_parallel_size * stages
    assert devices % group == 0, f"{group} devices do not divide {devices}"
    layout = config.pipeline_model_parallel_layout

    def layers_of(stage, chunk):
        if layout is not None:
            return layout.layout[stage][chunk].count(LayerType.decoder)
        return get_num_layers_to_build(config, vp_stage=chunk if runs > 1 else None, pp_rank=stage)

    layers = [layers_of(stage, chunk) for chunk in range(runs) for stage in range(stages)]
    return {
        "dp": devices // group,
        "cp": config.context_parallel_size,
        "tp": config.tensor_model_parallel_size,
        "pp": stages,
        "vp": runs,
        "layers": layers,
        "sequence_parallel": config.sequence_parallel,
        "recompute": {None: "none"}.get(config.recompute_granularity, config.recompute_granularity),
        "experts": config.expert_model_parallel_size,
        "heads": [config.num_attention_heads, config.num_query_groups, config.kv_channels],
        "hidden": config.hidden_size,
        "inner": config.moe_ffn_hidden_size or config.ffn_hidden_size,
        "dtype": str(config.params_dtype),
    }


def torchtitan(path, devices):
    from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class
    from torchtitan.config import ConfigManager
    from torchtitan.distributed import ParallelDims

    words = ["--module", "llama3", "--config", "llama3_8b", *loaded(path).OVERRIDES]
    config = ConfigManager().parse_args(words)
    dims = ParallelDims.from_config(config.parallelism, devices)
    own, batch = config.training.local_batch_size, config.training.global_batch_size
    degree = dims.dp_replicate * dims.dp_shard
    assert batch % (own * degree) == 0, f"{own} x {degree} does not divide {batch}"
    parts = config.parallelism.module_fqns_per_model_part
    micro = batch // (own * degree)
    if parts:
        single = issubclass(get_schedule_class(config.parallelism.pipeline_parallel_schedule), PipelineScheduleSingle)
        assert single == (len(parts) == dims.pp), "the schedule is for another number of runs"
        assert micro == 1
        micro = own // config.parallelism.pipeline_parallel_microbatch_size
    kind = type(config.activation_checkpoint).__qualname__.split(".")[0]
    return {
        "dp": degree,
        "cp": dims.cp,
        "experts": dims.ep,
        "tp": dims.tp,
        "pp": dims.pp,
        "vp": len(parts) // dims.pp if parts else 1,
        "layers": [sum(name.startswith("layers.") for name in part) for part in parts or []],
        "shards": dims.dp_shard * dims.cp,
        "gathers_again": config.parallelism.fsdp_reshard_after_forward,
        "micro_batches": micro,
        "sequence_parallel": dims.tp > 1 and config.parallelism.enable_sequence_parallel,
        "recompute": {"FullAC": "full", "SelectiveAC": "op", "NoneType": "none"}[kind],
        "dtype": config.training.mixed_precision_param,
    }


def deepspeed(path, devices):
    from deepspeed.runtime import config as runtime

    class Devices:
        def get_data_parallel_world_size(self):
            return devices

    runtime.dist.get_rank = lambda: 0  # nobody has started ranks here
    config = runtime.DeepSpeedConfig(path, mpu=Devices())
    assert config.world_size == devices, f"{config.world_size} devices"
    offload = config.zero_config.offload_optimizer
    return {
        "dp": devices,
        "micro_batches": config.gradient_accumulation_steps,
        "batch": config.train_batch_size,
        "zero": int(config.zero_optimization_stage),
        "bucket": config.zero_config.reduce_bucket_size,
        "kept_whole": config.zero_config.param_persistence_threshold,
        "offload": str(offload.device.value) if offload else "none",
        "recompute": "full" if "activation_checkpointing" in config._param_dict else "none",
        "bf16": config.bfloat16_config.enabled,
        "sums": config.grad_accum_dtype,
    }


def main():
    engine, devices, files = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines talk; only the answer is standard output
    answers = {}
    for path in files:
        try:
            answers[os.path.basename(path)] = globals()[engine](path, devices)
        except (Exception, SystemExit) as error:
            answers[os.path.basename(path)] = {"refused": f"{type(error).__name__}: {error}"}
    json.dump(answers, out)


main()
