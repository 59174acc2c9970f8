// SPDX-License-Identifier: Apache-2.0
// What does not depend on the number type: the unpartitioned plan, and the comparison of two steps.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/probe/step_job.h"
#include "gpu_probe/cpu/clones.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

const char* to_string(Compared kind) {
  switch (kind) {
    case Compared::activation: return "activation";
    case Compared::activation_gradient: return "gradient of the activation";
    case Compared::parameter_gradient: return "gradient of the parameter";
    case Compared::new_parameter: return "updated parameter";
  }
  return "";
}

double loss_factor(const Tensor& tensor, TensorId id, std::uint64_t seed, std::int64_t index) {
  if (tensor.elements() == 1) return 1;
  const double draw = counter_uniform(seed, 0x1055ull + id.index * 8ull, static_cast<std::uint64_t>(index));
  return (2 * draw - 1) / std::sqrt(static_cast<double>(tensor.elements()));
}

Plan whole_plan(const Model& model) { return unsplit_plan(model); }

std::vector<std::vector<std::int64_t>> statistics_shares(const Model& model, const Plan& plan) {
  std::vector<std::vector<std::int64_t>> shares;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    auto& here = shares.emplace_back(model.operators[OperatorId(i)].dims.size(), 1);
    for (int a = 0; a < plan.mesh.count(); ++a) {
      const int loop = plan.operators[i].split.axis[static_cast<std::size_t>(a)];
      if (loop >= 0) here[static_cast<std::size_t>(loop)] *= plan.mesh.axes[static_cast<std::size_t>(a)].size;
    }
  }
  return shares;
}

namespace {

using Key = std::tuple<Compared, OperatorId, std::uint32_t>;

struct Whole {
  const Recorded* recorded = nullptr;
  double scale = 0, square = 0;  ///< largest element, mean square
  double off = 0;                ///< of differences, the sum of squares
  std::int64_t compared = 0;
};

const Tensor& tensor_of(const Model& model, const Recorded& r) {
  const Operator& op = model.operators[r.op];
  const bool output = r.kind == Compared::activation || r.kind == Compared::activation_gradient;
  return model.tensors[output ? op.outputs[r.slot].tensor : op.inputs[r.slot].tensor];
}

/// Of a run of elements: the sum of the squared differences, no number or infinite if one of them is, and the largest.
struct Difference {
  double square = 0, most = 0;
};
TURNPOINT_CLONES void differ(const double* a, const double* b, std::int64_t count, Difference& result) {
  double square = 0, most = 0;
#pragma omp simd reduction(+ : square) reduction(max : most)
  for (std::int64_t i = 0; i < count; ++i) {
    const double off = a[i] - b[i], size = std::abs(off);
    square += off * off;
    most = size > most ? size : most;
  }
  result = {square, most};
}
TURNPOINT_CLONES void sizes_of(const double* a, std::int64_t count, Difference& result) {
  double square = 0, most = 0;
#pragma omp simd reduction(+ : square) reduction(max : most)
  for (std::int64_t i = 0; i < count; ++i) {
    const double size = std::abs(a[i]);
    square += size * size;
    most = size > most ? size : most;
  }
  result = {square, most};
}

using Reference = std::map<Key, Whole>;

// Some gradients are 0 and only rounding is left of them: that of a bias of attention's keys, which softmax takes off
// again. So a gradient counts as no smaller than this share of the largest one of its kind.
constexpr double kLeastGradient = 1e-3;

void raise_small_gradients(Reference& reference) {
  for (const Compared kind : {Compared::activation_gradient, Compared::parameter_gradient}) {
    Whole most;
    const auto each = [&](const auto& visit) {
      for (auto& [key, one] : reference)
        if (std::get<0>(key) == kind) visit(one);
    };
    each([&](const Whole& one) {
      most.scale = std::max(most.scale, one.scale);
      most.square = std::max(most.square, one.square);
    });
    each([&](Whole& one) {
      one.scale = std::max(one.scale, kLeastGradient * most.scale);
      one.square = std::max(one.square, kLeastGradient * kLeastGradient * most.square);
    });
  }
}

}  // namespace

double Comparison::largest() const { return std::max(loss, *std::max_element(worst.begin(), worst.end())); }

Expected<Comparison> compare(const Model& model, const Plan& plan, const StepRun& step, const StepRun& whole) {
  Reference reference;
  for (const auto& r : whole.ranks.front().recorded) {
    Whole& here = reference[{r.kind, r.op, r.slot}];
    here.recorded = &r;
    Difference sizes;
    sizes_of(r.data.data(), static_cast<std::int64_t>(r.data.size()), sizes);
    here.scale = sizes.most;
    here.square = sizes.square / std::max(1.0, static_cast<double>(r.data.size()));
  }
  raise_small_gradients(reference);
  Comparison result;
  result.loss = std::abs(step.loss - whole.loss) / std::max(std::abs(whole.loss), 1e-3);
  const auto check = [&](const Recorded& r, const std::vector<double>& data) -> Expected<void> {
    const auto found = reference.find({r.kind, r.op, r.slot});
    const Tensor& tensor = tensor_of(model, r);
    if (found == reference.end())
      return bad_input("the unpartitioned step has no " + std::string(to_string(r.kind)) + " '" + tensor.name + "'");
    const auto kind = static_cast<std::size_t>(r.kind);
    const double scale = std::max(found->second.scale, 1e-12);
    bool numbers = true;
    for_each_run(r.region, tensor.shape, r.first, static_cast<std::int64_t>(data.size()),
                 [&](std::int64_t local, std::int64_t index, std::int64_t count) {
                   const double* ours = data.data() + (local - r.first);
                   Difference run;
                   differ(ours, found->second.recorded->data.data() + index, count, run);
                   found->second.off += run.square;
                   // A value that is no number is wrong, whatever it is compared with; the largest does not show it.
                   const bool finite = std::isfinite(run.square);
                   if (!finite) numbers = numbers && std::none_of(ours, ours + count, [](double v) { return std::isnan(v); });
                   const double difference = finite ? run.most / scale : HUGE_VAL;
                   if (difference <= result.worst[kind]) return;
                   result.worst[kind] = difference;
                   if (result.worst[kind] >= result.largest())
                     result.where = model.operators[r.op].name + ": " + to_string(r.kind) + " '" + tensor.name + "'";
                 });
    if (!numbers) {
      result.worst[kind] = HUGE_VAL;
      result.where = model.operators[r.op].name + ": " + to_string(r.kind) + " '" + tensor.name + "' is no number";
    }
    found->second.compared += static_cast<std::int64_t>(data.size());
    result.elements[kind] += static_cast<std::int64_t>(data.size());
    return {};
  };
  // Ranks along partial axes hold summands of the same elements.
  std::map<std::pair<Key, int>, std::pair<const Recorded*, std::vector<double>>> sums;
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    for (const auto& r : step.ranks[rank].recorded) {
      if (!r.partial) {
        if (auto done = check(r, r.data); !done) return done.error();
        continue;
      }
      const std::uint32_t others = ((1u << plan.mesh.count()) - 1) & ~r.partial;
      auto& [first, sum] = sums[{{r.kind, r.op, r.slot}, position_of(plan.mesh, static_cast<int>(rank), others)}];
      first = &r;
      sum.resize(r.data.size(), 0);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += r.data[i];
    }
  }
  for (const auto& [key, sum] : sums)
    if (auto done = check(*sum.first, sum.second); !done) return done.error();
  double most = -1;
  for (const auto& [key, one] : reference) {
    if (one.compared == 0) continue;
    const double typical = std::sqrt(one.off / static_cast<double>(one.compared) / std::max(one.square, 1e-24));
    double& of_kind = result.typical[static_cast<std::size_t>(one.recorded->kind)];
    // What is no number is wrong, whatever it is compared with.
    of_kind = std::max(of_kind, std::isfinite(typical) ? typical : HUGE_VAL);
    if (of_kind <= most) continue;
    most = of_kind;
    result.where_typical = model.operators[one.recorded->op].name + ": " + to_string(one.recorded->kind) + " '" +
                           tensor_of(model, *one.recorded).name + "'";
  }
  return result;
}

double traffic_error(const StepRun& step, std::string* where) {
  double worst = 0;
  const auto& listed = step.ranks.front().traffic;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    double received = 0;
    for (const auto& rank : step.ranks) {
      if (rank.traffic.size() != listed.size()) return HUGE_VAL;
      received += rank.traffic[i].received_bytes + rank.traffic[i].in_place_bytes;
    }
    const double planned = listed[i].planned_bytes * static_cast<double>(step.ranks.size());
    const double error = std::abs(received - planned) / std::max(planned, 1.0);
    if (error <= worst) continue;
    worst = error;
    if (where)
      *where = listed[i].where + ", " + to_string(listed[i].move) + ": planned " + std::to_string(planned) +
               " bytes, received " + std::to_string(received);
  }
  return worst;
}

}  // namespace turnpoint::step
