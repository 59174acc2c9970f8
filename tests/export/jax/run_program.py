# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs a program that Turnpoint wrote for JAX on virtual devices, and says as JSON what came of it:
the collectives of the compiled text with their groups and bytes, the bytes of its arguments, and how far a step of it
is from one of the same network in one piece.

    python run_program.py FILE DEVICES
    python run_program.py FILE DEVICES --names      the names of its parameters
    python run_program.py LINE DEVICES --groups     the groups of a line of compiled text
"""

import importlib.util
import json
import math
import os
import sys

from compiled_text import collectives_of, groups_of

# XLA would join collectives of neighbours, and take a collective of forward for the same one in backward: both hide
# what the program says.
PASSES = "all-reduce-combiner,cpu-all-reduce-combiner,all-gather-combiner,reduce-scatter-combiner,cse"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={sys.argv[2]} --xla_disable_hlo_passes={PASSES}"

def main():
    if sys.argv[3:] == ["--groups"]:
        print(json.dumps(groups_of(sys.argv[1], int(sys.argv[2]))))
        return
    spec = importlib.util.spec_from_file_location("exported", sys.argv[1])
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    if sys.argv[3:] == ["--names"]:
        print(json.dumps({"names": [name for group in exported.GROUPS for name in group.names]}))
        return
    import jax
    import numpy as np

    mesh = exported.devices()
    weights, first, second, data = exported.drawn(1)
    state = lambda values: exported.place(mesh, values, exported.state_cut) if values else []
    held = exported.place(mesh, weights, exported.weights_cut)
    fed = exported.put(mesh, data, exported.DATA_SPECS)
    compiled = exported.program(mesh).lower(held, state(first), state(second), fed, np.float32(1), np.int32(1)).compile()
    local = lambda tree: sum(
        math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree)
    )
    print(
        json.dumps(
            {
                "collectives": collectives_of(compiled.as_text(), int(sys.argv[2])),
                "argument_bytes": compiled.memory_analysis().argument_size_in_bytes,
                "weight_bytes": local(held),
                "state_bytes": local(state(first)) + local(state(second)),
                "data_bytes": local(fed),
                "apart": exported.compare(mesh, compiled),
            }
        )
    )


if __name__ == "__main__":
    main()
