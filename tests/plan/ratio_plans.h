// SPDX-License-Identifier: Apache-2.0
// Ratio plans made by hand and at random.
#pragma once

#include <algorithm>
#include <random>

#include "core/cost/operator_cost.h"
#include "core/model/operator_kind.h"
#include "core/plan/loop_lengths.h"
#include "core/plan/ratio_evaluator.h"
#include "core/plan/ratio_places.h"
#include "search/partition_cases.h"

namespace turnpoint::test {

/// Two devices, every operator cut as the sharding plan's one axis splits it.
inline RatioPlan in_halves(const Model& model, const Plan& plan) {
  RatioPlan made;
  made.order = {0, 1};
  made.parts = {{1, {}}, {2, {0, 0}}};
  RatioPlan::Cut cut{1, 0.5, {}, {RatioPlan::kNoCut, RatioPlan::kNoCut}};
  for (const auto& planned : plan.operators) {
    const int loop = planned.split.axis[0];
    cut.share.push_back(
        loop < 0 ? RatioPlan::Share{}
                 : RatioPlan::Share{std::int8_t(loop), model.operators[planned.op].dims[std::size_t(loop)].size / 2});
  }
  made.cuts.push_back(std::move(cut));
  return made;
}

/// A product of a batch by one matrix, 12 x 10 to 12 x 8.
inline ModelPtr one_product() {
  ModelBuilder b("product", "test", 12, 0);
  TensorId x = b.input("x", {12, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("fc", x, b.parameter("w", {10, 8}));
  return finished(b, x);
}

inline std::int8_t loop_of(const Operator& op, std::string_view name) {
  for (std::size_t l = 0; l < op.dims.size(); ++l)
    if (to_string(op.dims[l].name) == name) return std::int8_t(l);
  return -1;
}

/// Two devices; every operator but the data gives the first one so many units of a loop.
inline RatioPlan cut_by(std::string_view loop, std::int64_t first, const Scenario& scenario) {
  RatioPlan made;
  made.order = {0, 1};
  made.parts = {{1, {}}, {2, {0, 0}}};
  RatioPlan::Cut cut{1, 0.5, {}, {RatioPlan::kNoCut, RatioPlan::kNoCut}};
  for (std::size_t o = 0; o < scenario.model->operators.size(); ++o) {
    const Operator& op = scenario.model->operators[OperatorId(o)];
    const bool data = op.kind == OperatorKind::input;
    const bool splits = !data || loop == "batch";
    cut.share.push_back(splits ? RatioPlan::Share{loop_of(op, loop), first} : RatioPlan::Share{});
  }
  made.cuts.push_back(std::move(cut));
  return made;
}

inline ScenarioPtr rings_on(const ModelPtr& model, const char* hardware) {
  return scenario_on(model, hardware, [](Settings& s) {
    s.collectives = Collectives::rings;
    s.bucket_bytes = 0;
  });
}

/// The plan with any operators to run again, on some devices these, on some those, on others none.
inline RatioPlan with_random_reruns(std::mt19937_64& random, const Model& model, RatioPlan plan) {
  plan.reruns.assign(2, {});
  for (std::uint32_t d = 0; d < plan.order.size(); ++d)
    if (const auto list = random() % 3; list < 2) plan.reruns[list].devices.push_back(d);
  for (RatioPlan::Rerun& rerun : plan.reruns)
    for (std::size_t o = 0; o < model.operators.size(); ++o)
      if (const Operator& op = model.operators[OperatorId(o)];
          !op.is_view() && op.kind != OperatorKind::input && random() % 2)
        rerun.operators.push_back(OperatorId(o));
  return plan;
}

/// The plan with updates shared out at random, in random shares, between halves that hold weights alike.
inline RatioPlan with_random_updates(std::mt19937_64& random, const Scenario& scenario, RatioPlan plan) {
  const RatioCharges charges(scenario, plan);
  const auto places = places_of(plan, *scenario.model, charges);
  if (!places) qFatal("%s", places.error().message().c_str());
  for (const RatioPlace& place : *places) {
    if (place.is_device()) continue;
    plan.cuts[place.cut].updates.resize(place.held.size());
    for (std::size_t o = 0; o < place.held.size(); ++o)
      if (place.held[o] == RatioPlace::Held::alike && random() % 4)
        plan.cuts[place.cut].updates[o] = random() % 2 ? 0.5 : 0.05 + 0.9 * double(random() % 1000) / 1000;
  }
  return plan;
}

/// Any tree over the scenario's devices, any shares that are legal at their place.
class RandomRatioPlan {
 public:
  RandomRatioPlan(std::mt19937_64& random, const Scenario& scenario) : random_(random), scenario_(scenario) {
    made_.order.resize(std::size_t(scenario.cluster->devices()));
    for (std::uint32_t d = 0; d < made_.order.size(); ++d) made_.order[d] = d;
    std::shuffle(made_.order.begin(), made_.order.end(), random);
    part(made_.order.size(), loop_lengths(*scenario.model));
    // Cuts were made from within, the whole's last; it comes first.
    const auto last = std::uint32_t(made_.cuts.size()) - 1;
    std::reverse(made_.cuts.begin(), made_.cuts.end());
    for (RatioPlan::Cut& cut : made_.cuts)
      for (std::uint32_t& next : cut.next)
        if (next != RatioPlan::kNoCut) next = last - next;
  }
  RatioPlan plan() const { return made_; }

 private:
  struct Made {
    std::uint32_t part = 0, cut = RatioPlan::kNoCut;
  };
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  Made part(std::size_t devices, const LoopLengths& lengths) {
    if (devices == 1) {
      made_.parts.push_back({1, {}});
      return {std::uint32_t(made_.parts.size() - 1), RatioPlan::kNoCut};
    }
    const std::size_t first = 1 + below(devices - 1);
    RatioPlan::Cut cut{0, 0.1 + 0.1 * double(below(9)), {}, {}};
    std::array<LoopLengths, 2> halves{lengths, lengths};
    for (std::size_t o = 0; o < lengths.size(); ++o) {
      const Operator& op = scenario_.model->operators[OperatorId(o)];
      const auto loop = std::size_t(below(op.dims.size() + 1));
      const bool may = loop < op.dims.size() && lengths[o][loop] > 1 &&
                       can_split(op, std::int8_t(loop), scenario_.settings.split_windows);
      cut.share.push_back({});
      if (!may) continue;
      cut.share.back() = {std::int8_t(loop), 1 + std::int64_t(below(std::uint64_t(lengths[o][loop] - 1)))};
      halves[0][o][loop] = cut.share.back().first;
      halves[1][o][loop] = lengths[o][loop] - cut.share.back().first;
    }
    const Made one = part(first, halves[0]), other = part(devices - first, halves[1]);
    made_.parts.push_back({std::uint32_t(devices), {one.part, other.part}});
    cut.part = std::uint32_t(made_.parts.size() - 1);
    cut.next = {one.cut, other.cut};
    made_.cuts.push_back(std::move(cut));
    return {std::uint32_t(made_.parts.size() - 1), std::uint32_t(made_.cuts.size() - 1)};
  }

  std::mt19937_64& random_;
  const Scenario& scenario_;
  RatioPlan made_;
};

}  // namespace turnpoint::test
