// SPDX-License-Identifier: Apache-2.0
// Ratio plans as they stand in step jobs, by hand and by chance.
#pragma once

#include <algorithm>
#include <functional>
#include <random>

#include "core/probe/step_job.h"

namespace turnpoint::test {

/// Ranks in a row: the first of all is cut off, then the next, or halves of halves where `balanced`. No shares yet.
inline StepRatio uncut_ratio(const Model& model, std::uint32_t ranks, bool balanced) {
  StepRatio ratio;
  for (std::uint32_t r = 0; r < ranks; ++r) ratio.order.push_back(r);
  struct Made {
    std::uint32_t part, cut;
  };
  const std::function<std::uint32_t(std::uint32_t)> parts = [&](std::uint32_t devices) {
    if (devices == 1) {
      ratio.parts.push_back({});
    } else {
      const std::uint32_t first = balanced ? devices / 2 : 1;
      const std::uint32_t a = parts(first), b = parts(devices - first);
      ratio.parts.push_back({devices, {a, b}});
    }
    return static_cast<std::uint32_t>(ratio.parts.size() - 1);
  };
  const std::function<std::uint32_t(std::uint32_t)> cuts = [&](std::uint32_t part) {
    if (ratio.parts[part].devices == 1) return StepRatio::kNoCut;
    const auto number = static_cast<std::uint32_t>(ratio.cuts.size());
    ratio.cuts.push_back({part, std::vector<StepRatio::Share>(model.operators.size()), {}});
    for (std::size_t h = 0; h < 2; ++h) {
      const std::uint32_t next = cuts(ratio.parts[part].halves[h]);
      ratio.cuts[number].next[h] = next;
    }
    return number;
  };
  cuts(parts(ranks));
  return ratio;
}

/// How long every operator's loops are in the part of each cut, shares of the cuts above being set; calls
/// `visit(cut, operator, lengths)` for every cut from the whole inwards, and takes the share that it returns.
inline void set_shares(
    const Model& model, StepRatio& ratio,
    const std::function<StepRatio::Share(std::uint32_t, OperatorId, const std::vector<std::int64_t>&)>& visit) {
  using Lengths = std::vector<std::vector<std::int64_t>>;
  Lengths whole;
  for (const Operator& op : model.operators) {
    auto& here = whole.emplace_back();
    for (const LoopDimension& dim : op.dims) here.push_back(dim.size);
  }
  const std::function<void(std::uint32_t, const Lengths&)> go = [&](std::uint32_t cut, const Lengths& lengths) {
    if (cut == StepRatio::kNoCut) return;
    std::array<Lengths, 2> halves{lengths, lengths};
    for (std::size_t o = 0; o < lengths.size(); ++o) {
      const StepRatio::Share share = ratio.cuts[cut].share[o] = visit(cut, OperatorId(o), lengths[o]);
      if (share.loop < 0) continue;
      const auto l = static_cast<std::size_t>(share.loop);
      halves[0][o][l] = share.first;
      halves[1][o][l] -= share.first;
    }
    for (std::size_t h = 0; h < 2; ++h) go(ratio.cuts[cut].next[h], halves[h]);
  };
  go(ratio.cuts.empty() ? StepRatio::kNoCut : 0, whole);
}

/// A loop that a cut may share out: long enough, no hidden units of a recurrent operator.
inline bool may_cut(const Operator& op, std::size_t loop, std::int64_t length) {
  const LoopDimension& dim = op.dims[loop];
  return length > 1 && dim.splittable && !(op.kind == OperatorKind::recurrent && dim.name == DimName::out_channel);
}

/// Every operator by some loop or by none, in some share, ranks in some order.
inline StepRatio random_ratio(const Model& model, std::uint32_t ranks, std::mt19937& random) {
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  StepRatio ratio = uncut_ratio(model, ranks, below(2) == 0);
  std::shuffle(ratio.order.begin(), ratio.order.end(), random);
  set_shares(model, ratio, [&](std::uint32_t, OperatorId id, const std::vector<std::int64_t>& lengths) {
    const Operator& op = model.operators[id];
    std::vector<std::size_t> loops;
    for (std::size_t l = 0; l < lengths.size(); ++l)
      if (may_cut(op, l, lengths[l]) && (op.kind != OperatorKind::input || op.dims[l].name == DimName::batch))
        loops.push_back(l);
    if (loops.empty() || below(6) == 0) return StepRatio::Share{};
    const std::size_t l = loops[below(loops.size())];
    return StepRatio::Share{static_cast<std::int8_t>(l),
                            1 + static_cast<std::int64_t>(below(static_cast<std::size_t>(lengths[l] - 1)))};
  });
  return ratio;
}

/// Any operators that compute something are to run again, other ones on every rank, on some ranks none.
inline void any_run_again(const Model& model, StepRatio& ratio, std::mt19937& random) {
  ratio.again.resize(random() % (ratio.order.size() + 1));
  for (auto& operators : ratio.again)
    for (std::size_t o = 0; o < model.operators.size(); ++o)
      if (const Operator& op = model.operators[OperatorId(o)];
          !op.is_view() && op.kind != OperatorKind::input && random() % 2)
        operators.push_back(OperatorId(o));
}

inline StepJob ratio_job(const ModelPtr& model, StepRatio ratio) {
  StepJob job;
  job.model = model;
  job.plan = unsplit_plan(*model);
  job.ratio = std::move(ratio);
  job.backend = ProbeBackend::cpu;
  return job;
}

}  // namespace turnpoint::test
