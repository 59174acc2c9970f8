#!/bin/bash
TP=8   # tensor parallel
export PP=2
ARGS=(
    --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP
    --micro-batch-size=1
    --global-batch-size 128 --seq-length 4096
    --sequence-parallel
    --recompute-granularity selective
    --use-distributed-optimizer
    --bf16
)
