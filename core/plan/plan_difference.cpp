// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan_difference.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/text.h"
#include "core/plan/iteration_cost.h"
#include "core/plan/resemblance.h"

namespace turnpoint {

namespace {

bool has_stages(const Plan& plan) { return plan.pipeline && plan.pipeline->stages > 1; }

DifferenceParts parts_of(const CostBreakdown& cost, double weights_s) {
  DifferenceParts parts;
  parts.memory_bytes = cost.memory_bytes();
  parts.recompute_s = cost.compute[std::size_t(ComputePart::recompute)];
  parts.compute_s = cost.compute_s() - parts.recompute_s;
  parts.offload_s = cost.network[std::size_t(NetworkPart::offload)];
  parts.weights_s = weights_s;
  parts.activations_s = cost.network_s() - parts.offload_s - weights_s;
  return parts;
}

/// Of an operator: all that it sends belongs to its parameters.
DifferenceParts parts_of(const PlanOperator& op, int micro_batches) {
  const CostBreakdown cost = of_iteration(op, micro_batches);
  return parts_of(cost, cost.network_s() - cost.network[std::size_t(NetworkPart::offload)]);
}

DifferenceParts minus(DifferenceParts parts, const DifferenceParts& less) {
  parts.memory_bytes -= less.memory_bytes;
  parts.compute_s -= less.compute_s, parts.recompute_s -= less.recompute_s;
  parts.weights_s -= less.weights_s, parts.activations_s -= less.activations_s;
  parts.offload_s -= less.offload_s, parts.waiting_s -= less.waiting_s;
  return parts;
}

/// Of a plan with stages: memory of the largest, time of the slowest. What all stages send over boundaries, and what
/// they reshard, is what is left of its network.
DifferenceParts parts_of_stages(const Plan& plan) {
  std::vector<double> busy(std::size_t(plan.pipeline->stages)), weights(busy.size());
  for (const PlanOperator& op : plan.operators) {
    const DifferenceParts own = parts_of(op, plan.micro_batches());
    busy[std::size_t(op.stage)] += own.time_s();
    weights[std::size_t(op.stage)] += own.weights_s;
  }
  for (const PlanReshard& one : plan.reshards)
    busy[std::size_t(plan.operators[one.producer.index].stage)] += of_iteration(one, plan.micro_batches()).time_s();
  const auto slowest = std::size_t(std::ranges::max_element(busy) - busy.begin());
  const double waiting = plan.cost.network[std::size_t(NetworkPart::bubble)],
               sent = plan.cost.network_s() - plan.cost.network[std::size_t(NetworkPart::offload)] - waiting;
  DifferenceParts parts = parts_of(plan.cost, std::min(weights[slowest], sent));
  parts.activations_s -= waiting;
  parts.waiting_s = waiting;
  return parts;
}

DifferenceParts parts_of(const Plan& plan) {
  if (has_stages(plan)) return parts_of_stages(plan);
  DifferenceParts parts;
  for (const PlanOperator& op : plan.operators) parts += parts_of(op, plan.micro_batches());
  for (const PlanReshard& one : plan.reshards) parts += parts_of(of_iteration(one, plan.micro_batches()), 0);
  return parts;
}

std::string_view path_of(const Operator& op) { return op.scope.empty() ? op.name : op.scope; }

std::string rest_of(const std::string& name, const std::string& layer) {
  if (!name.starts_with(layer) || name.size() <= layer.size() + 1) return name;
  return name.substr(layer.size() + 1);
}

constexpr const char* kStays = "stays in place";

/// "all-gather, then all-to-all" of what a resharding sends forward and back.
std::string moves_of(const Mesh& mesh, const PlanReshard& reshard) {
  const auto words = [&](const std::vector<ReshardStep>& steps) {
    std::string text;
    for (const ReshardStep& step : steps) {
      if (step.move == ReshardMove::slice) continue;
      if (!text.empty()) text += ", then ";
      std::string move = to_string(step.move);
      std::ranges::replace(move, '_', '-');
      text += fmt::format("{} among {}", move, mesh.size_of(step.axes));
    }
    return text;
  };
  std::string forward = words(reshard.forward);
  const std::string backward = words(reshard.backward());
  if (forward.empty() && backward.empty()) return kStays;
  if (forward.empty()) forward = "nothing";
  return backward.empty() ? forward : fmt::format("{} (backward: {})", forward, backward);
}

class Comparer {
 public:
  Comparer(const Model& model, const Plan& first, const Plan& second) : model_(model), first_(first), second_(second) {}

  PlanDifference run() {
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const PlanOperator &a = first_.operators[i], &b = second_.operators[i];
      Layer& layer = layer_of(OperatorId(i));
      layer.first += parts_of(a, first_.micro_batches());
      layer.second += parts_of(b, second_.micro_batches());
      note(OperatorId(i), model_.operators[OperatorId(i)].name, false, words_of(model_, first_.mesh, a),
           words_of(model_, second_.mesh, b));
    }
    add_reshards();
    PlanDifference result;
    result.of_stages = has_stages(first_) || has_stages(second_);
    if (result.of_stages) result.total = minus(parts_of(second_), parts_of(first_));
    for (const std::string& name : order_) {
      if (result.of_stages) break;
      const Layer& layer = layers_.at(name);
      const DifferenceParts parts = minus(layer.second, layer.first);
      result.total += parts;
      if (!parts.none()) result.layers.push_back({name, parts});
    }
    result.changes = gather();
    return result;
  }

 private:
  /// Summed each by itself, so that of equal plans nothing is left.
  struct Layer {
    DifferenceParts first, second;
  };

  Layer& layer_of(OperatorId op) {
    const std::string name = layer_name(model_.operators[op]);
    const auto [it, fresh] = layers_.try_emplace(name);
    if (fresh) order_.push_back(name);
    return it->second;
  }

  void add_reshards() {
    // An operator may read a tensor twice.
    struct Moves {
      OperatorId producer;
      std::string was, is;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Moves> moves;  // by tensor and reader
    const auto add = [&](const Plan& plan, DifferenceParts Layer::*parts, std::string Moves::*words) {
      for (const PlanReshard& one : plan.reshards) {
        layer_of(one.producer).*parts += parts_of(of_iteration(one, plan.micro_batches()), 0);
        Moves& both = moves[{one.tensor.index, one.consumer.index}];
        both.producer = one.producer;
        std::string& text = both.*words;
        text += (text.empty() ? "" : "; ") + moves_of(plan.mesh, one);
      }
    };
    add(first_, &Layer::first, &Moves::was);
    add(second_, &Layer::second, &Moves::is);
    for (const auto& [key, both] : moves)
      note(both.producer, model_.tensors[TensorId(key.first)].name, true, both.was.empty() ? kStays : both.was,
           both.is.empty() ? kStays : both.is);
  }

  struct Change {
    OperatorId op;
    std::string name, layer, was, is;
    bool tensor = false;
  };

  void note(OperatorId op, const std::string& name, bool tensor, std::string was, std::string is) {
    if (was == is) return;
    const std::string layer = layer_name(model_.operators[op]);
    changes_.push_back({op, rest_of(name, layer), layer, std::move(was), std::move(is), tensor});
  }

  /// First the layers in which a name changes alike, then the names that change alike in the same layers.
  std::vector<PlanChange> gather() const {
    std::map<std::tuple<bool, std::string, std::string, std::string>, std::size_t> known;
    std::vector<PlanChange> by_name;
    for (const Change& one : changes_) {
      const auto [it, fresh] = known.try_emplace({one.tensor, one.name, one.was, one.is}, by_name.size());
      if (fresh) by_name.push_back({one.tensor, {}, {one.name}, one.was, one.is});
      by_name[it->second].operators.push_back(one.op);
      auto& layers = by_name[it->second].layers;
      if (layers.empty() || layers.back() != one.layer) layers.push_back(one.layer);
    }
    std::vector<PlanChange> result;
    for (PlanChange& one : by_name) {
      const auto alike = std::find_if(result.begin(), result.end(), [&](const PlanChange& other) {
        return std::tie(other.tensor, other.was, other.is, other.layers) ==
               std::tie(one.tensor, one.was, one.is, one.layers);
      });
      if (alike == result.end()) {
        result.push_back(std::move(one));
        continue;
      }
      alike->names.push_back(one.names.front());
      alike->operators.insert(alike->operators.end(), one.operators.begin(), one.operators.end());
    }
    return result;
  }

  const Model& model_;
  const Plan &first_, &second_;
  std::map<std::string, Layer> layers_;
  std::vector<std::string> order_;
  std::vector<Change> changes_;
};

bool numbered(std::string_view part) {
  return !part.empty() && std::isdigit(static_cast<unsigned char>(part.back())) != 0;
}

/// "layer12" as "layer" and 12.
std::optional<std::pair<std::string, long>> number_of(const std::string& layer) {
  std::size_t digits = layer.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(layer[digits - 1]))) --digits;
  if (digits == layer.size() || layer.size() - digits > 9) return std::nullopt;
  return std::pair(layer.substr(0, digits), std::stol(layer.substr(digits)));
}

}  // namespace

bool DifferenceParts::none() const {
  return memory_bytes == 0 && compute_s == 0 && recompute_s == 0 && weights_s == 0 && activations_s == 0 &&
         offload_s == 0 && waiting_s == 0;
}

DifferenceParts& DifferenceParts::operator+=(const DifferenceParts& other) {
  memory_bytes += other.memory_bytes;
  compute_s += other.compute_s, recompute_s += other.recompute_s;
  weights_s += other.weights_s, activations_s += other.activations_s;
  offload_s += other.offload_s, waiting_s += other.waiting_s;
  return *this;
}

PlanDifference difference_of(const Model& model, const Plan& first, const Plan& second) {
  return Comparer(model, first, second).run();
}

std::string words_of(const Model& model, const Mesh& mesh, const PlanOperator& planned) {
  const Operator& op = model.operators[planned.op];
  std::array<std::int64_t, kParallels> ways;
  ways.fill(1);
  for (int a = 0; a < mesh.count(); ++a)
    ways[std::size_t(parallel_of(model, op, planned.split.axis[std::size_t(a)]))] *= mesh.axes[std::size_t(a)].size;
  std::string text;
  for (int p = 1; p < kParallels; ++p)
    if (ways[std::size_t(p)] > 1)
      text += fmt::format("{}{} {}", text.empty() ? "" : " \u00d7 ", to_string(static_cast<Parallel>(p)),
                          ways[std::size_t(p)]);
  if (text.empty()) text = mesh.devices() > 1 ? "repeated on all devices" : "on one device";
  if (!planned.parameters.empty()) switch (planned.choice.update) {
      case Update::replicated: break;
      case Update::sharded_state: text += "; optimizer state sharded (ZeRO-1)"; break;
      case Update::sharded: text += "; gradients and optimizer state sharded (ZeRO-2)"; break;
      case Update::sharded_weights: text += "; weights sharded (ZeRO-3)"; break;
    }
  if (!planned.parameters.empty() && planned.choice.update != Update::replicated)
    text += fmt::format(" among {}", mesh.size_of(planned.choice.update_axes));
  if (!planned.parameters.empty() && planned.choice.gathers_first())
    text += planned.choice.gather == WeightGather::before_forward ? "; new weights gathered before forward"
                                                                  : "; new weights gathered before forward in bf16";
  if (planned.choice.offload) text += "; optimizer state at the host";
  if (planned.choice.recompute) text += "; runs again in backward";
  return text;
}

std::string layer_name(const Operator& op) {
  const std::string_view path = path_of(op);
  std::size_t first_end = std::string_view::npos;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find_first_of("/.", begin), path.size());
    if (numbered(path.substr(begin, end - begin)) && (end < path.size() || !op.scope.empty()))
      return std::string(path.substr(0, end));
    if (first_end == std::string_view::npos) first_end = end;
    begin = end + 1;
  }
  return std::string(path.substr(0, first_end));
}

std::vector<std::string> runs_of(const std::vector<std::string>& layers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    if (const auto first = number_of(layers[i]))
      while (end < layers.size() &&
             number_of(layers[end]) == std::pair(first->first, first->second + static_cast<long>(end - i)))
        ++end;
    if (end - i > 2)
      parts.push_back(fmt::format("{} to {}", layers[i], layers[end - 1]));
    else
      parts.insert(parts.end(), layers.begin() + std::ptrdiff_t(i), layers.begin() + std::ptrdiff_t(end));
    i = end;
  }
  return parts;
}

std::string in_words(const std::vector<std::string>& layers) {
  return fmt::format("{}", fmt::join(runs_of(layers), ", "));
}

std::string describe_place(const PlanChange& change) {
  if (change.layers.size() == 1 && change.names.size() == 1 && change.layers.front() == change.names.front())
    return change.names.front();
  return fmt::format("{}: {}", in_words(change.layers), fmt::join(change.names, ", "));
}

}  // namespace turnpoint
