// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/ways.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace turnpoint::jax {

namespace {

/// Partial in both on the same axes, or whole where it is partial at the source: summed there.
bool sums_at_source(const Layout& source, const Layout& gradient) {
  for (std::size_t a = 0; a < gradient.axis.size(); ++a) {
    const auto there = source.axis[a], here = gradient.axis[a];
    const bool fine =
        there == Layout::kPartial ? here == Layout::kPartial || here == Layout::kReplicated : here == there;
    if (!fine) return false;
  }
  return true;
}

class WayFinder {
 public:
  WayFinder(const Model& model, const Plan& plan) : model_(model), plan_(plan), ways_(std::make_unique<Ways>()) {
    for (const auto& reshard : plan.reshards) left_.push_back(&reshard);
  }

  Expected<std::unique_ptr<const Ways>> run() {
    ways_->uses = analyse_tensor_uses(model_);
    ways_->flows.reserve(ways_->uses.flows.size());  // flows point into one another
    for (std::size_t i = 0; i < model_.operators.size(); ++i) add_operator(OperatorId(i));
    for (const TensorFlow& use : ways_->uses.flows)
      if (auto done = add_flow(use); !done) return done.error();
    for (const ParameterTie& use : ways_->uses.ties)
      if (auto done = add_tie(use); !done) return done.error();
    return std::unique_ptr<const Ways>(std::move(ways_));
  }

 private:
  Layout read_by(OperatorId id, std::size_t input) const {
    const Operator& op = model_.operators[id];
    return gradient_layout(op, op.inputs[input], false, plan_.operators[id.index].split, plan_.mesh.count());
  }

  void add_operator(OperatorId id) {
    const Operator& op = model_.operators[id];
    const std::vector<int> none(op.inputs.size(), -1);
    ways_->input_flow.push_back(none);
    ways_->input_reader.push_back(none);
    ways_->input_tie.push_back(none);
    ways_->output_flow.emplace_back(op.outputs.size(), -1);
    ways_->runs_again.push_back(plan_.operators[id.index].choice.recompute &&
                                ways_->uses.run_again[id.index] != RunAgain::never);
    const auto is_parameter = [&](const Access& access) {
      return model_.tensors[access.tensor].role == TensorRole::parameter;
    };
    const bool reads_any = std::any_of(op.inputs.begin(), op.inputs.end(),
                                       [&](const Access& access) { return access.saved && is_parameter(access); });
    ways_->along.emplace_back();
    for (const Access& access : op.inputs)
      ways_->along.back().push_back(reads_any && !access.saved && is_parameter(access));
  }

  const PlanReshard* take(TensorId tensor, OperatorId consumer, const Layout& from, const Layout* to) {
    for (auto& candidate : left_) {
      if (!candidate || candidate->tensor != tensor || candidate->consumer != consumer) continue;
      if (candidate->from != from || (to && candidate->to != *to)) continue;
      return std::exchange(candidate, nullptr);
    }
    return nullptr;
  }

  Expected<Way> make_way(const Tensor& tensor, const Layout& from, bool from_output, const Layout& read, bool saved,
                         const PlanReshard* reshard) {
    Way way;
    way.start = from_output ? from : from.without_partial();
    way.goal = read.without_partial();
    way.read = read;
    way.back = from.without_partial();
    way.reshard = reshard;
    way.saved = saved;
    way.meets = !from_output && sums_at_source(from, read);
    const bool moves_gradient = tensor.requires_gradient && !way.meets;
    if (!reshard && (way.moves() || (moves_gradient && read != way.back)))
      return bad_input("plan: a needed resharding of '" + tensor.name + "' is missing", model_.name);
    return way;
  }

  Expected<void> add_flow(const TensorFlow& use) {
    const Tensor& tensor = model_.tensors[use.tensor];
    const Operator& producer = model_.operators[use.producer];
    Flow flow;
    flow.use = &use;
    flow.produced = forward_layout(producer, producer.outputs[use.output], true,
                                   plan_.operators[use.producer.index].split, plan_.mesh.count());
    const PlanReshard* stored = take(use.tensor, OperatorId(), flow.produced, nullptr);
    if (use.shared() || stored) {
      const Layout layout = stored ? stored->to : flow.produced.without_partial();
      auto way = make_way(tensor, flow.produced, true, layout, use.any_consumer_saves(), stored);
      if (!way) return way.error();
      flow.shared = std::move(*way);
    }
    const auto number = static_cast<int>(ways_->flows.size());
    for (std::size_t c = 0; c < use.consumers.size(); ++c) {
      const auto& consumer = use.consumers[c];
      const Layout from = flow.shared ? flow.shared->read : flow.produced, read = read_by(consumer.op, consumer.input);
      auto way =
          make_way(tensor, from, !flow.shared, read, use.consumer_saves[c], take(use.tensor, consumer.op, from, &read));
      if (!way) return way.error();
      flow.ways.push_back(std::move(*way));
      ways_->input_flow[consumer.op.index][consumer.input] = number;
      ways_->input_reader[consumer.op.index][consumer.input] = static_cast<int>(c);
    }
    ways_->output_flow[use.producer.index][use.output] = number;
    ways_->flows.push_back(std::move(flow));
    keep_source(ways_->flows.back());
    return {};
  }

  void keep_source(Flow& flow) const {
    const TensorFlow& use = *flow.use;
    const bool again = ways_->runs_again[use.producer.index];
    const Way* only = flow.shared ? &*flow.shared : flow.ways.size() == 1 ? &flow.ways.front() : nullptr;
    const bool reads_own = use.producer_saves && !use.producer_is_view && !again;
    if (reads_own && only && only->saved && only->moves() && only->reshard && only->reshard->keep == Keep::after)
      flow.restoring = only;
    const auto needs_source = [](const Way& way) {
      return way.saved && (!way.moves() || (way.reshard && way.reshard->keep == Keep::before));
    };
    bool keep = use.producer_saves && !flow.restoring;
    if (flow.shared)
      keep = keep || needs_source(*flow.shared);
    else
      keep = keep || std::any_of(flow.ways.begin(), flow.ways.end(), needs_source);
    flow.keeps_source = keep && !use.producer_is_view && !again;
  }

  Expected<void> add_tie(const ParameterTie& use) {
    const Tensor& held = model_.tensors[model_.operators[use.owner].inputs[use.owner_input].tensor];
    const Tensor& read = model_.tensors[model_.operators[use.user].inputs[use.user_input].tensor];
    Tie tie;
    tie.use = &use;
    tie.turned = held.shape != read.shape;
    const Layout from = read_by(use.owner, use.owner_input);
    Layout to = read_by(use.user, use.user_input);
    for (auto& value : to.axis)
      if (tie.turned && value >= 0) value = static_cast<std::int8_t>(1 - value);
    auto way = make_way(held, from, false, to, true,
                        take(model_.operators[use.owner].inputs[use.owner_input].tensor, use.user, from, &to));
    if (!way) return way.error();
    tie.way = std::move(*way);
    ways_->input_tie[use.user.index][use.user_input] = static_cast<int>(ways_->ties.size());
    ways_->ties.push_back(std::move(tie));
    return {};
  }

  const Model& model_;
  const Plan& plan_;
  std::unique_ptr<Ways> ways_;
  std::vector<const PlanReshard*> left_;
};

}  // namespace

Expected<std::unique_ptr<const Ways>> Ways::of(const Model& model, const Plan& plan) {
  return WayFinder(model, plan).run();
}

}  // namespace turnpoint::jax
