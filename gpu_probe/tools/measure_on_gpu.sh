#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a GPU on a machine that has nothing of ours but turnpoint-probe and job files, written before with
#   turnpoint-cli measure --backend cuda --job-out JOB.json ...
# and records what the probe says, for `turnpoint-cli measure --from RECORDING.jsonl` at home.
#
# or, for the step of a plan, `turnpoint-cli validate --backend cuda --job-out JOB.json ...` and `validate --from`:
#
#   measure_on_gpu.sh OUTPUT_FOLDER PROBE JOB.json...
#
# Finds CUDA's libraries beside Python packages (nvidia-*), in /usr/local/cuda and where LD_LIBRARY_PATH says.
# Each job is ended after SECONDS_PER_JOB (default 240).
set -u
if [ $# -lt 3 ]; then
  echo "usage: $0 OUTPUT_FOLDER PROBE JOB.json..." >&2
  exit 2
fi
out=$1 probe=$2
shift 2
limit=${SECONDS_PER_JOB:-240}
mkdir -p "$out" || exit 2
chmod +x "$probe" 2>/dev/null

paths=${LD_LIBRARY_PATH:-}
for folder in /usr/local/cuda/lib64 /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu/nvidia \
  $(ls -d /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib /usr/lib/python3*/dist-packages/nvidia/*/lib \
    /usr/local/lib/python3*/*-packages/nvidia/*/lib "$HOME"/.local/lib/python3*/site-packages/nvidia/*/lib 2>/dev/null); do
  [ -d "$folder" ] && paths="$paths:$folder"
done
export LD_LIBRARY_PATH=$paths

log=$out/log.txt
{
  date -u
  uname -a
  ldd --version | head -n 1
  echo "libraries in: $paths"
  for name in libcuda.so.1 libnvidia-ml.so.1 libnvrtc.so.13 libnvrtc.so.12 libcublasLt.so.13 libcublasLt.so.12 libcudnn.so.9 libnccl.so.2; do
    found=$(IFS=:; for folder in $paths; do [ -e "$folder/$name" ] && echo "$folder/$name" && break; done)
    [ -z "$found" ] && found=$(ldconfig -p 2>/dev/null | grep -m 1 -F "$name " | sed 's/.*=> //')
    echo "$name: ${found:-not found}"
  done
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,temperature.gpu,power.draw --format=csv 2>&1
} >"$log" 2>&1
cat "$log"

failed=0
for job in "$@"; do
  name=$(basename "$job" .json)
  record=$out/$name.jsonl
  echo "== $name"
  timeout --signal=TERM --kill-after=5 "$limit" "$probe" --job "$job" >"$record" 2>"$out/$name.stderr"
  code=$?
  [ $code -ne 0 ] && failed=1
  echo "exit $code, $(grep -c '"type":"item"' "$record") items, $(grep -c '"not_measured":"' "$record") not measured, $(wc -c <"$record") bytes"
  grep -m 1 '"type":"hello"' "$record" | cut -c 1-1800
  grep '"type":"error"' "$record" | cut -c 1-600
  grep -m 1 '"type":"result"' "$record"
  # Of a step job: how many operators and phases were timed, and whether the partitioned step equals the whole one.
  steps=$(grep -c '"type":"operator"' "$record")
  [ "$steps" -gt 0 ] && echo "$steps phases of operators timed, $(grep -c '"type":"exchange"' "$record") exchanges listed" &&
    grep -m 1 '"type":"result"' "$record" | grep -o '"numerics":{[^}]*}'
  grep -o '"not_measured":"[^"]*"' "$record" | sort | uniq -c | sort -rn | head -n 12
  tail -c 800 "$out/$name.stderr"
  # The best rates of products, to see at a glance whether the figures can be right.
  grep '"time_s"' "$record" | awk '{
    flop = time = 0; kind = ""; precision = "";
    if (match($0, /"flop":[0-9.e+]+/)) flop = substr($0, RSTART + 7, RLENGTH - 7) + 0;
    if (match($0, /"time_s":[0-9.e+-]+/)) time = substr($0, RSTART + 9, RLENGTH - 9) + 0;
    if (match($0, /"kind":"[^"]*"/)) kind = substr($0, RSTART + 8, RLENGTH - 9);
    if (match($0, /"precision":"[^"]*"/)) precision = substr($0, RSTART + 13, RLENGTH - 14);
    if (time > 0) { rate = flop / time / 1e12; key = kind " " precision; n[key]++; if (rate > best[key]) best[key] = rate; }
  } END { for (key in n) printf "%-30s %5d items, best %8.2f TFLOP/s\n", key, n[key], best[key]; }' | sort
done
# One file to carry home.
tar -czf "$out/recordings.tar.gz" -C "$out" $(cd "$out" && ls | grep -v 'recordings.tar.gz') 2>/dev/null
ls -la "$out"
exit $failed
