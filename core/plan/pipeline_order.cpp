// SPDX-License-Identifier: Apache-2.0
#include "core/plan/pipeline_order.h"

#include <algorithm>

namespace turnpoint {

namespace {

std::vector<PipelineStep> forwards_before_backwards(int chunks, int micro_batches) {
  std::vector<PipelineStep> order;
  order.reserve(2 * static_cast<std::size_t>(chunks) * static_cast<std::size_t>(micro_batches));
  for (int c = 0; c < chunks; ++c)
    for (int b = 0; b < micro_batches; ++b) order.push_back({true, c, b});
  for (int c = chunks; c-- > 0;)
    for (int b = 0; b < micro_batches; ++b) order.push_back({false, c, b});
  return order;
}

}  // namespace

std::vector<PipelineStep> pipeline_order(int stage, int stages, int chunks, int micro_batches, bool forwards_first) {
  if (forwards_first) return forwards_before_backwards(chunks, micro_batches);
  const int all = chunks * micro_batches, behind = stages - 1 - stage;
  const int warm_up = std::min(all, chunks == 1 ? behind : 2 * behind + (chunks - 1) * stages);
  const auto step = [&](bool forward, int i) {
    const int round = i / (stages * chunks), chunk = i / stages % chunks;
    return PipelineStep{forward, forward ? chunk : chunks - 1 - chunk, round * stages + i % stages};
  };
  std::vector<PipelineStep> order;
  order.reserve(2 * static_cast<std::size_t>(all));
  for (int i = 0; i < warm_up; ++i) order.push_back(step(true, i));
  for (int i = warm_up; i < all; ++i) {
    order.push_back(step(true, i));
    order.push_back(step(false, i - warm_up));
  }
  for (int i = all - warm_up; i < all; ++i) order.push_back(step(false, i));
  return order;
}

std::vector<int> most_in_flight(std::span<const PipelineStep> order, std::span<const std::int64_t> bytes) {
  std::vector<int> now(bytes.size(), 0), most(bytes.size(), 0);
  std::int64_t held = 0, largest = -1;
  for (const PipelineStep& step : order) {
    const auto chunk = static_cast<std::size_t>(step.chunk);
    now[chunk] += step.forward ? 1 : -1;
    held += step.forward ? bytes[chunk] : -bytes[chunk];
    if (held > largest) largest = held, most = now;
  }
  return most;
}

}  // namespace turnpoint
