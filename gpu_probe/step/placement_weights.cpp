// SPDX-License-Identifier: Apache-2.0
// Weights of a placed step and their gradients: read where they are held or as they were sent, summed from time step to
// time step and over all readers, updated by whoever holds them.
#include "core/model/backward_reads.h"
#include "gpu_probe/step/placement_rank.h"

namespace turnpoint::step {

namespace {

/// The transpose of a matrix.
Value transposed_block(Ledger& ledger, const Value& value) {
  const std::int64_t rows = value->region.extent[0], columns = value->region.extent[1];
  Value result = make_block(ledger, {{0, 0}, {columns, rows}}, value->element_bytes);
  transpose(value->data.data(), rows, columns, result->data.data());
  return result;
}

/// One direction's part of a recurrent operator's weight or its gradient: directions lie one after the other.
Value direction_of(Ledger& ledger, const Value& value, const Region& part) {
  if (value->region == part) return value;
  const auto elements = static_cast<std::size_t>(part.elements());
  return std::make_shared<Block>(ledger, part, value->element_bytes,
                                 value->data.part(static_cast<std::size_t>(part.offset.front()) * elements, elements),
                                 false);
}

}  // namespace

// Where it is updated.
Value PlacedRank::held_weight(OperatorId owner, std::uint32_t input) {
  Values all(op_of(owner).inputs.size());
  std::vector<bool> one(all.size(), false);
  one[input] = true;
  for (auto& share : shares_[owner.index])
    if (auto done = share.read(one, false, all); !done) return {};
  return all[input];
}

// On their own device weights are read where they are.
void PlacedRank::hold_weights(OperatorId id) {
  const auto& weights = program_.inner[id.index].weights;
  for (std::uint32_t k = 0; k < weights.size(); ++k)
    for (const std::uint32_t item : weights[k])
      items_[item] = direction_of(report_.ledger, held_weight(id, k), program_.items[item].part);
}

// All weights, or those that backward reads; as they were in this step's forward. Of a time step those of its
// direction.
void PlacedRank::read_weights(Piece piece, bool backward_only, Values& values) {
  const Operator& op = op_of(piece.op);
  const Loops loops = tasks_of(piece.op).stepping.loops(op, piece.number);
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    if (!reads_parameter(model(), op.inputs[k])) continue;
    if (backward_only && !backward_reads_weights(model(), op, k)) continue;
    const auto [owner, input, turned] = program_.owner_of(piece.op, k);
    const Tensor& tensor = tensor_of(op_of(owner).inputs[input]);
    const Region part = turned ? whole_of(tensor) : *part_of(model(), op, op.inputs[k], loops);
    if (program_.weights_travel) {
      values[k] = put_together(tensor, program_.inner[owner.index].weights[input], part);
    } else {
      const auto kept = old_.find(owner);
      values[k] =
          direction_of(report_.ledger, kept != old_.end() ? kept->second[input] : held_weight(owner, input), part);
    }
    if (turned) values[k] = transposed_block(report_.ledger, values[k]);
  }
}

// Where layers are kept whole the simulator does not know of gradients of gates.
Value PlacedRank::room_for_gates(std::uint32_t item) {
  const PlacedItem& of = program_.items[item];
  const int bytes = program_.weights_travel ? element_bytes(model().tensors[of.tensor], options()) : 0;
  return make_block(report_.ledger, of.part, bytes);
}

// Where the gradient of a weight is summed: in the run that is updated, if it is the first there.
Value PlacedRank::room_for_sum(std::uint32_t item) {
  const PlacedItem& of = program_.items[item];
  const auto [owner, input, turned] = program_.owner_of(of.op, of.slot);
  const std::size_t piece = program_.tasks[of.maker].piece;
  const bool in_the_end = program_.has_sum(of.op, piece) || !program_.weights_travel;
  if (!turned && in_the_end && is_here(tasks_of(owner).update)) {
    auto& [target, whose] = targets_.try_emplace({owner, input}, Value(), of.op).first->second;
    for (auto& share : shares_[owner.index])
      if (!target) target = share.gradient_target(input);
    if (target && whose == of.op) return direction_of(report_.ledger, target, of.part);
  }
  return make_block(report_.ledger, of.part, options().gradient_bytes);
}

// Time steps go on with the sum of those behind: in place where layers are kept whole, else in a buffer of their own,
// as the simulator has it.
Value PlacedRank::weight_gradient(Piece piece, std::uint32_t k) {
  const auto& items = program_.inner[piece.op.index].weight_gradients[k];
  const auto from = program_.adds_to(piece.op, piece.number);
  Value& sum = items_[items[piece.number]];
  if (from && !program_.weights_travel) return sum = items_[items[*from]];
  sum = room_for_sum(items[piece.number]);
  if (from)
    copy(items_[items[*from]]->data.data(), sum->data.data(), sum->data.size());
  else if (stepwise(piece.op))
    sum->data.clear();
  return sum;
}

// What all directions of a reader have summed.
void PlacedRank::add_up(OperatorId owner, const WeightReader& reader) {
  const auto& items = program_.inner[reader.op.index].weight_gradients[reader.input];
  const Tensor& tensor = tensor_of(op_of(reader.op).inputs[reader.input]);
  const auto target = targets_.find({owner, reader.owner_input});
  Value whole;
  if (target != targets_.end() && target->second.second == reader.op) whole = target->second.first;
  for (std::size_t p = 0; p < items.size(); ++p) {
    if (!program_.has_sum(reader.op, p)) continue;
    const Value& sum = items_[items[p]];
    if (!whole && sum->region == whole_of(tensor)) {
      whole = sum;
      continue;
    }
    if (!whole) whole = make_block(report_.ledger, whole_of(tensor), options().gradient_bytes);
    const Value to = direction_of(report_.ledger, whole, sum->region);
    if (to->data.data() != sum->data.data()) copy(sum->data.data(), to->data.data(), sum->data.size());
  }
  if (reader.turned) whole = transposed_block(report_.ledger, whole);
  double seconds = 0;  // those of the task are taken as a whole
  for (auto& share : shares_[owner.index]) share.add_gradient(reader.owner_input, whole, false, seconds);
}

// A task that reads the weights may come behind their update: it is to see them as they were.
void PlacedRank::keep_weights_as_they_were(OperatorId id) {
  const auto copied = [&](const Value& value, const Tensor& tensor) {
    Value kept = make(tensor, value->region);
    copy(value->data.data(), kept->data.data(), kept->data.size());
    return kept;
  };
  if (program_.weights_travel) {
    if (readers_left_[tasks_of(id).weights] == 0) return;
    for (const auto& items : program_.inner[id.index].weights)
      for (const std::uint32_t item : items)
        if (items_[item]) items_[item] = copied(items_[item], model().tensors[program_.items[item].tensor]);
    return;
  }
  int readers = weight_readers_left_[id.index];
  for (const Tie& tie : program_.program->ties)
    if (tie.owner == id) readers += weight_readers_left_[tie.user.index];
  if (readers == 0) return;
  Values kept(op_of(id).inputs.size());
  for (std::uint32_t k = 0; k < kept.size(); ++k)
    if (const Value held = held_weight(id, k)) kept[k] = copied(held, tensor_of(op_of(id).inputs[k]));
  old_[id] = std::move(kept);
}

Expected<void> PlacedRank::update(OperatorId id) {
  keep_weights_as_they_were(id);
  for (const WeightReader& reader : program_.readers[id.index]) add_up(id, reader);
  std::erase_if(targets_, [id](const auto& target) { return target.first.first == id; });
  double seconds = 0;
  for (auto& share : shares_[id.index]) {
    if (auto done = share.synchronise(true); !done) return done;
    if (options().record) share.record(report_.recorded, Compared::parameter_gradient);
    if (auto done = share.update(seconds); !done) return done;
    if (options().record) share.record(report_.recorded, Compared::new_parameter);
    share.end();
  }
  return {};
}

}  // namespace turnpoint::step
