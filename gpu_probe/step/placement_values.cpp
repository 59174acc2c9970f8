// SPDX-License-Identifier: Apache-2.0
// What the tasks of a placed step read: tensors and their parts, through views; gradients summed over all readers.
#include <algorithm>

#include "gpu_probe/step/placement_rank.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

namespace {

template <class To>
std::vector<To*> addresses(const std::vector<Value>& values) {
  std::vector<To*> all;
  for (const auto& value : values) all.push_back(value.get());
  return all;
}

}  // namespace

Value PlacedRank::make(const Tensor& tensor, const Region& part) {
  return make_block(report_.ledger, part, element_bytes(tensor, options()));
}

Value PlacedRank::make_clear(const Tensor& tensor, const Region& part) {
  Value value = make(tensor, part);
  value->data.clear();
  return value;
}

LocalOperator PlacedRank::local(Piece piece) const {
  LocalOperator at;
  at.model = &model();
  at.id = piece.op;
  at.seed = options().seed;
  at.loops = op_of(piece.op).is_view() ? whole_loops(op_of(piece.op))
                                       : tasks_of(piece.op).stepping.loops(op_of(piece.op), piece.number);
  return at;
}

// Data and buffers: drawn once.
Value PlacedRank::generated(TensorId id) {
  const Tensor& tensor = model().tensors[id];
  Array& drawn = data_[id];
  if (drawn.size() == 0) {
    drawn = Array::outside(static_cast<std::size_t>(tensor.elements()));
    Filling numbers(drawn.data());
    for (std::size_t i = 0; i < drawn.size(); ++i)
      numbers.add(data_value(tensor, id, options().seed, static_cast<std::uint64_t>(i)));
  }
  return std::make_shared<Block>(report_.ledger, whole_of(tensor), element_bytes(tensor, options()), drawn, true);
}

Value PlacedRank::cut(const Tensor& tensor, const Value& value, const Region& part) {
  if (value->region == part) return value;
  Value made = make(tensor, part);
  copy_overlap(value->region, value->data.data(), part, made->data.data());
  return made;
}

Value PlacedRank::put_together(const Tensor& tensor, const std::vector<std::uint32_t>& items, const Region& part) {
  Value made;
  for (const std::uint32_t item : items) {
    const Region& held = program_.items[item].part;
    const Region both = intersection(held, part);
    if (both.elements() == 0) continue;
    if (both == part) return cut(tensor, items_[item], part);
    if (!made) made = make(tensor, part);
    copy_overlap(held, items_[item]->data.data(), part, made->data.data());
  }
  return made;
}

// A part of what a view makes; where it leaves every element where it is, no copy.
Expected<Value> PlacedRank::seen(OperatorId view, const Value& value, const Region& part) {
  LocalOperator at = local({view, 0});
  const Access& out = op_of(view).outputs.front();
  at.loops = *loops_of(model(), op_of(view), out, part);
  const Tensor& tensor = tensor_of(out);
  if (fast() && keeps_order(at, value->region, part))
    return std::make_shared<Block>(report_.ledger, part, value->element_bytes, value->data, false);
  Value made = make(tensor, part);
  if (!arithmetic().on_device) made->data.clear();
  Values in(op_of(view).inputs.size()), to{made};
  in[0] = value;
  if (auto done = program_of(view).kernel.forward(at, addresses<const Block>(in), addresses<Block>(to)); !done)
    return done.error();
  return made;
}

Expected<Value> PlacedRank::pulled_back(std::span<const OperatorId> views, Value gradient) {
  for (std::size_t v = views.size(); v-- > 0;) {
    const Operator& op = op_of(views[v]);
    const Tensor& tensor = tensor_of(op.inputs.front());
    LocalOperator at = local({views[v], 0});
    at.loops = *loops_of(model(), op, op.outputs.front(), gradient->region);
    const Region part = *part_of(model(), op, op.inputs.front(), at.loops);
    if (fast() && keeps_order(at, part, gradient->region)) {
      gradient = std::make_shared<Block>(report_.ledger, part, gradient->element_bytes, gradient->data, true);
      continue;
    }
    Values in(op.inputs.size()), out(op.outputs.size()), result(op.inputs.size()), gradients(op.outputs.size());
    result[0] = make_clear(tensor, part);
    gradients[0] = gradient;
    if (auto done = program_of(views[v]).kernel.backward(at, addresses<const Block>(in), addresses<const Block>(out),
                                                         addresses<const Block>(gradients), addresses<Block>(result));
        !done)
      return done.error();
    gradient = result[0];
  }
  return gradient;
}

// What a piece reads of an activation, of data or of a buffer.
Expected<Value> PlacedRank::input_value(Piece piece, std::size_t input) {
  const Access& access = op_of(piece.op).inputs[input];
  const TensorId stored = storage_of(model(), access.tensor);
  const Tensor& tensor = model().tensors[stored];
  const Sight sight = program_.sight(piece.op, input, piece.number);
  const Region needed = sight.tensor == stored ? sight.parts.front() : whole_of(tensor);
  Value value;
  if (!tensor.producer.valid()) {
    value = cut(tensor, generated(stored), needed);
  } else {
    const auto& outputs = op_of(tensor.producer).outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].tensor == stored) value = put_together(tensor, program_.outputs[tensor.producer.index][o], needed);
  }
  for (std::size_t v = 0; v < sight.views.size(); ++v) {
    const Tensor& made = tensor_of(op_of(sight.views[v]).outputs.front());
    const bool through = v >= sight.unseen;
    auto next = seen(sight.views[v], value, through ? sight.parts[v - sight.unseen + 1] : whole_of(made));
    if (!next) return next.error();
    value = std::move(*next);
    if (v + 1 == sight.unseen) value = cut(made, value, sight.parts.front());
  }
  return value;
}

// As if the result were what is stored: its factors go back through the views.
Expected<Value> PlacedRank::loss_factors(TensorId result) {
  if (const auto known = loss_factors_.find(result); known != loss_factors_.end()) return known->second;
  const Tensor& tensor = model().tensors[result];
  Array factors = Array::outside(static_cast<std::size_t>(tensor.elements()));
  {
    Filling numbers(factors.data());
    for (std::size_t i = 0; i < factors.size(); ++i)
      numbers.add(loss_factor(tensor, result, options().seed, static_cast<std::int64_t>(i)));
  }
  auto back = pulled_back(
      views_before(model(), result),
      std::make_shared<Block>(report_.ledger, whole_of(tensor), element_bytes(tensor, options()), factors, false));
  if (!back) return back.error();
  // Kept from step to step, it counts nowhere.
  Array kept = Array::outside((*back)->data.size());
  copy((*back)->data.data(), kept.data(), kept.size());
  return loss_factors_[result] =
             std::make_shared<Block>(report_.ledger, (*back)->region, (*back)->element_bytes, std::move(kept), false);
}

// The results of the network that this output, or a view of it, is.
Expected<void> PlacedRank::add_loss(Piece piece, std::size_t output, const Value& value) {
  const TensorId stored = op_of(piece.op).outputs[output].tensor;
  for (const TensorId result : model().results) {
    if (!is_floating(model().tensors[result].type) || storage_of(model(), result) != stored) continue;
    auto factors = loss_factors(result);
    if (!factors) return factors.error();
    // Factors are whole numbers whatever tensors are kept in.
    Array here = (*factors)->data;
    if ((*factors)->region != value->region) {
      here = Array::whole_scratch(value->data.size());
      copy_overlap((*factors)->region, (*factors)->data.data(), value->region, here.data());
    }
    weighted_sum(here.data(), value->data.data(), here.size(), [this](double sum) { report_.loss += sum; });
  }
  return {};
}

// From all readers and from the loss; null: none. The first of them is summed into if it is just that: it is nobody
// else's then.
Expected<Value> PlacedRank::output_gradient(Piece piece, std::size_t output) {
  const TensorId stored = op_of(piece.op).outputs[output].tensor;
  const Tensor& tensor = model().tensors[stored];
  if (!tensor.requires_gradient) return Value();
  const Region& part = program_.items[program_.outputs[piece.op.index][output][piece.number]].part;
  Value sum;
  const auto add_part = [&](const Value& value) {
    if (!sum && value->region == part) {
      sum = value;
      return;
    }
    if (!sum) sum = make_clear(tensor, part);
    if (value->region == part)
      add(value->data.data(), sum->data.data(), sum->data.size());
    else
      copy_overlap(value->region, value->data.data(), part, sum->data.data(), true);
  };
  if (const auto gradients = program_.gradients.find(stored); gradients != program_.gradients.end())
    for (const std::size_t number : gradients->second) {
      const PlacedGradient& given = program_.given[number];
      if (given.tensor == stored) {
        for (const std::uint32_t item : given.items)
          if (intersection(program_.items[item].part, part).elements() > 0) add_part(items_[item]);
        continue;
      }
      const Tensor& made = model().tensors[given.tensor];
      Value whole = make_clear(made, whole_of(made));
      for (const std::uint32_t item : given.items)
        copy_overlap(items_[item]->region, items_[item]->data.data(), whole->region, whole->data.data(), true);
      auto back = pulled_back(given.views, std::move(whole));
      if (!back) return back.error();
      add_part(*back);
    }
  for (const TensorId result : model().results) {
    if (!is_floating(model().tensors[result].type) || storage_of(model(), result) != stored) continue;
    auto factors = loss_factors(result);
    if (!factors) return factors.error();
    if (!sum) sum = make_clear(tensor, part);
    copy_overlap((*factors)->region, (*factors)->data.data(), part, sum->data.data(), true);
  }
  return sum;
}

void PlacedRank::record(Compared kind, OperatorId op, std::uint32_t slot, const Block& block) {
  if (options().record) report_.recorded.push_back({kind, op, slot, block.region, 0, 0, numbers_of(block.data)});
}

}  // namespace turnpoint::step
