// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/ratio_rank.h"

#include <algorithm>

#include "gpu_probe/step/slowed.h"
#include "gpu_probe/step/values/drawn.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

RatioRank::RatioRank(const RatioProgram& program, Communicator& communicator, double slowness)
    : program_(program),
      communicator_(communicator),
      slowness_(slowness),
      me_(static_cast<std::uint32_t>(communicator.rank())),
      leaf_(program.tree.leaf_of[me_]),
      path_(program.tree.path_to(me_)),
      keeping_(program, me_),
      traffic_(program.lines.size()),
      weights_(program.weights.size()),
      tied_(program.ties.size()),
      tied_gradients_(program.weights.size()) {
  for (const Operator& op : model().operators) {
    inputs_.emplace_back(op.inputs.size());
    kept_outputs_.emplace_back(op.outputs.size());
    input_gradients_.emplace_back(op.inputs.size());
  }
  for (std::size_t w = 0; w < weights_.size(); ++w) draw(weights_[w], program_.weights[w]);
}

Expected<void> RatioRank::run() {
  begin_moments();
  report_.loss = report_.norm_bytes = 0;
  report_.recorded.clear();
  report_.seconds.assign(model().operators.size(), {});
  traffic_.assign(program_.lines.size(), {});
  report_.runs_again.assign(model().operators.size(), 0);
  backward_to_ = model().operators.size();
  const Moment began = moment();
  report_.before_forward = report_.ledger;
  for (std::size_t o = 0; o < model().operators.size(); ++o)
    if (auto done = forward(OperatorId(o)); !done) return done;
  report_.after_forward = report_.ledger;
  for (std::size_t o = model().operators.size(); o-- > 0;)
    if (auto done = backward(OperatorId(o)); !done) return done;
  for (Value& copy : tied_) copy.reset();
  report_.after_backward = report_.ledger;
  if (auto done = update(); !done) return done;
  between(began, moment(), [this](double seconds) { report_.seconds_all = seconds; });
  return settle();
}

RatioRank::Stopwatch::Stopwatch(RatioRank& rank, OperatorId id, StepPhase phase)
    : rank_(rank), sum_(&rank.report_.seconds[id.index][static_cast<std::size_t>(phase)]), since_(moment()) {}
RatioRank::Stopwatch::~Stopwatch() {
  slow_down(since_, rank_.slowness_);
  between(since_, moment(), [sum = sum_](double seconds) { *sum += seconds; });
}

LocalOperator RatioRank::local(OperatorId id) const {
  LocalOperator at;
  at.model = program_.model.get();
  at.id = id;
  at.seed = options().seed;
  at.loops = program_.tree.nodes[leaf_].loops[id.index];
  for (const RatioLie& output : program_of(id).outputs)
    at.adds_once = at.adds_once && first_among(program_.tree, output, me_, Layout::kPartial);
  return at;
}

Value RatioRank::make(const Tensor& tensor, const Region& region) {
  return make_block(report_.ledger, region, element_bytes(tensor, options()));
}

void RatioRank::record(Compared kind, OperatorId op, std::uint32_t slot, const Block& block, std::uint32_t partial) {
  if (options().record) report_.recorded.push_back({kind, op, slot, block.region, 0, partial, numbers_of(block.data)});
}

// --- what is the same in every step ---

void RatioRank::draw(Weight& weight, const RatioWeight& of) {
  const Access& access = op_of(of.op).inputs[of.input];
  const Region& region = part(program_of(of.op).inputs[of.input]);
  // States of what is updated here alone, run by run.
  std::vector<std::pair<Region, Region>> updated;
  for (const std::uint32_t run : of.runs.empty() ? std::vector<std::uint32_t>() : of.runs_of[me_])
    updated.emplace_back(of.runs[run].block, of.runs[run].shard.part[leaf_]);
  if (of.runs.empty()) updated.emplace_back(region, Region{{0}, {region.elements()}});
  std::int64_t own = 0;
  for (const auto& [block, shard] : updated) own += shard.elements();
  weight.weight = std::make_shared<Block>(report_.ledger, region, options().weight_bytes, Held::parameters);
  const auto state = [&](bool there, int bytes) {
    const std::int64_t rows = bytes > 0 || there ? own : 0;
    auto made = std::make_shared<Block>(report_.ledger, Region{{0}, {rows}}, bytes,
                                        Array::whole(there ? static_cast<std::size_t>(own) : 0), true);
    made->count_as(Held::optimizer);
    return made;
  };
  weight.first = state(states_of(options().rule) > 0, options().optimizer_bytes);
  weight.second = state(states_of(options().rule) > 1, 0);  // counted in the first
  const auto fill_with = [&](DrawnFor what, const std::vector<std::pair<Region, Region>>& parts, Array& to) {
    std::vector<double> numbers(to.size());
    double* next = numbers.data();
    for (const auto& [block, shard] : parts) {
      draw_parameter(model(), access.tensor, block, shard.offset[0], shard.elements(), what, options(), next);
      next += shard.elements();
    }
    put(numbers, to.data());
  };
  fill_with(DrawnFor::weight, {{region, Region{{0}, {region.elements()}}}}, weight.weight->data);
  if (weight.first->data.size() > 0) fill_with(DrawnFor::first_state, updated, weight.first->data);
  if (weight.second->data.size() > 0) fill_with(DrawnFor::second_state, updated, weight.second->data);
  if (options().rule == UpdateRule::adafactor) draw_factors(weight, of, updated);
}

Value RatioRank::generated(TensorId id, const Region& region) {
  const Tensor& tensor = model().tensors[id];
  Array& drawn = data_[{id, region.offset}];
  if (drawn.size() != static_cast<std::size_t>(region.elements())) {
    drawn = Array::outside(static_cast<std::size_t>(region.elements()));
    Filling numbers(drawn.data());
    for_each_element(region, tensor.shape, [&](std::size_t, std::int64_t index) {
      numbers.add(data_value(tensor, id, options().seed, static_cast<std::uint64_t>(index)));
    });
  }
  Value loaded = make(tensor, region);
  copy(drawn.data(), loaded->data.data(), drawn.size());
  return loaded;
}

const Array& RatioRank::loss_factors(TensorId result, const Region& region) {
  Array& factors = loss_factors_[{result, region.offset}];
  if (factors.size() > 0) return factors;
  factors = Array::outside(static_cast<std::size_t>(region.elements()));
  Filling numbers(factors.data());
  const Tensor& tensor = model().tensors[result];
  for_each_element(region, tensor.shape, [&](std::size_t, std::int64_t index) {
    numbers.add(loss_factor(tensor, result, options().seed, index));
  });
  return factors;
}

// --- messages ---

Expected<Value> RatioRank::carry(const RatioWay& way, Value value, const Region& wanted) {
  if (way.move.empty()) {
    if (value->region == wanted) return value;
    Value cut = make_block(report_.ledger, wanted, value->element_bytes);
    copy_overlap(value->region, value->data.data(), wanted, cut->data.data());
    return cut;
  }
  RatioTraffic& traffic = traffic_[static_cast<std::size_t>(way.line)];
  const Moment since = moment();
  Value room = make_block(report_.ledger, way.move.room[me_], value->element_bytes);
  room->data.clear();
  copy_overlap(value->region, value->data.data(), room->region, room->data.data());
  value.reset();
  for (const std::uint32_t node : path_)
    if (!way.move.at[node].empty())
      if (auto done = exchange(way.move.at[node], *room, traffic); !done) return done.error();
  Value result = std::move(room);
  if (result->region != wanted) {
    const Value all = std::exchange(result, make_block(report_.ledger, wanted, result->element_bytes));
    copy_overlap(all->region, all->data.data(), wanted, result->data.data());
  }
  between(since, moment(),
          [this, line = way.line](double seconds) { traffic_[static_cast<std::size_t>(line)].seconds += seconds; });
  return result;
}

// Both halves send what they have before they add what they get.
Expected<void> RatioRank::exchange(const std::vector<RatioMessage>& messages, Block& room, RatioTraffic& traffic) {
  Group group;
  for (const RatioMessage& message : messages)
    for (const std::uint32_t rank : {message.from, message.to}) group.push_back(static_cast<int>(rank));
  std::sort(group.begin(), group.end());
  group.erase(std::unique(group.begin(), group.end()), group.end());
  if (!std::binary_search(group.begin(), group.end(), static_cast<int>(me_))) return {};
  std::vector<std::size_t> out_size(group.size(), 0), in_size(group.size(), 0);
  const auto place = [&](std::uint32_t rank) {
    return static_cast<std::size_t>(std::lower_bound(group.begin(), group.end(), static_cast<int>(rank)) -
                                    group.begin());
  };
  for (const RatioMessage& message : messages) {
    const auto elements = static_cast<std::size_t>(message.part.elements());
    if (message.from == me_) out_size[place(message.to)] += elements;
    if (message.to == me_) in_size[place(message.from)] += elements;
  }
  std::vector<Array> sent, received;
  std::vector<Numbers> out, in;
  for (std::size_t i = 0; i < group.size(); ++i) {
    out.push_back(sent.emplace_back(Array::scratch_like(room.data.data(), out_size[i])).numbers());
    in.push_back(received.emplace_back(Array::scratch_like(room.data.data(), in_size[i])).numbers());
  }
  std::vector<std::int64_t> at(group.size(), 0);
  for (const RatioMessage& message : messages) {
    if (message.from != me_) continue;
    std::int64_t& to = at[place(message.to)];
    copy_overlap(room.region, room.data.data(), message.part, sent[place(message.to)].data() + to);
    to += message.part.elements();
  }
  communicator_.take_received();
  if (auto done = communicator_.all_to_all(group, out, in); !done) return done;
  traffic.all += communicator_.take_received();
  std::fill(at.begin(), at.end(), 0);
  for (const RatioMessage& message : messages) {
    if (message.to != me_) continue;
    std::int64_t& from = at[place(message.from)];
    copy_overlap(message.part, received[place(message.from)].data() + from, room.region, room.data.data(), true);
    from += message.part.elements();
    traffic.fresh += message.fresh;
  }
  return {};
}

}  // namespace turnpoint::step
