// SPDX-License-Identifier: Apache-2.0
// What a rank of a ratio plan computes: the kernels of other plans, on ranges of its own.
#include <algorithm>
#include <utility>

#include "gpu_probe/step/ratio_rank.h"

namespace turnpoint::step {

namespace {

template <class To, class From>
std::vector<To*> pointers_of(const std::vector<From>& values) {
  std::vector<To*> all;
  for (const auto& value : values) all.push_back(value.get());
  return all;
}

/// The transpose of a matrix.
Value transpose_of(Ledger& ledger, const Value& value) {
  const Region& r = value->region;
  Value result = make_block(ledger, {{r.offset[1], r.offset[0]}, {r.extent[1], r.extent[0]}}, value->element_bytes);
  transpose(value->data.data(), r.extent[0], r.extent[1], result->data.data());
  return result;
}

}  // namespace

Expected<void> RatioRank::forward(OperatorId id) {
  const Operator& op = op_of(id);
  const RatioOperator& here = program_of(id);
  if (op.kind == OperatorKind::input) {
    Values outputs;
    for (std::size_t o = 0; o < op.outputs.size(); ++o)
      outputs.push_back(generated(op.outputs[o].tensor, part(here.outputs[o])));
    return publish(id, std::move(outputs));
  }
  auto outputs = compute(id, StepPhase::forward);
  if (!outputs) return outputs.error();
  Values& inputs = inputs_[id.index];
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (keeping_.kept[id.index][k])
      inputs[k]->count_as(Held::kept);
    else if (keeping_.lost[id.index][k] || !op.inputs[k].saved || tensor_of(op.inputs[k]).producer.valid() ||
             tensor_of(op.inputs[k]).role == TensorRole::parameter)
      inputs[k].reset();
  }
  return publish(id, std::move(*outputs));
}

Expected<RatioRank::Values> RatioRank::compute(OperatorId id, StepPhase phase) {
  const Operator& op = op_of(id);
  const RatioOperator& here = program_of(id);
  Values outputs;
  Values& inputs = inputs_[id.index];
  if (auto done = read_weights(id, false, inputs); !done) return done.error();
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (!inputs[k]) inputs[k] = generated(op.inputs[k].tensor, part(here.inputs[k]));
  const Stopwatch watch(*this, id, phase);
  for (std::size_t o = 0; o < op.outputs.size(); ++o)
    outputs.push_back(make(tensor_of(op.outputs[o]), part(here.outputs[o])));
  const LocalOperator at = local(id);
  const auto in = pointers_of<const Block>(inputs);
  const auto out = pointers_of<Block>(outputs);
  if (!(fast() && here.kernel.fast_forward && here.kernel.fast_forward(at, in, out))) {
    for (Block* block : out) block->data.clear();
    if (auto done = here.kernel.forward(at, in, out); !done) return done.error();
  }
  return outputs;
}

/// What backward, or another run, of this operator reads and its producer makes again is there afterwards.
Expected<void> RatioRank::restore(OperatorId id) {
  const Operator& op = op_of(id);
  for (std::size_t k = 0; k < op.inputs.size(); ++k)
    if (keeping_.lost[id.index][k] && !inputs_[id.index][k])
      if (auto done = run_again(model().tensors[op.inputs[k].tensor].producer); !done) return done;
  return {};
}

// Its outputs go to all that lost them and have not been through backward; nothing is sent.
Expected<void> RatioRank::run_again(OperatorId id) {
  if (std::exchange(report_.runs_again[id.index], 1)) return {};
  if (auto done = restore(id); !done) return done;
  auto outputs = compute(id, StepPhase::recompute);
  if (!outputs) return outputs.error();
  for (std::size_t k = 0; k < op_of(id).inputs.size(); ++k)
    if (!op_of(id).inputs[k].saved) inputs_[id.index][k].reset();  // backward does not read it
  for (std::size_t o = 0; o < outputs->size(); ++o) {
    if (op_of(id).outputs[o].saved) kept_outputs_[id.index][o] = (*outputs)[o];
    if (program_of(id).output_flow[o] < 0) continue;
    const RatioFlow& flow = program_.flows[static_cast<std::size_t>(program_of(id).output_flow[o])];
    for (const RatioReaders& group : flow.readers)
      for (const Model::Use& use : group.uses)
        if (keeping_.lost[use.op.index][use.input] && use.op.index < backward_to_)
          inputs_[use.op.index][use.input] = (*outputs)[o];
  }
  return {};
}

// To all readers at once; what nobody reads any more goes with them.
Expected<void> RatioRank::publish(OperatorId id, Values outputs) {
  const Operator& op = op_of(id);
  const RatioOperator& here = program_of(id);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const RatioLie& made = here.outputs[o];
    record(Compared::activation, id, static_cast<std::uint32_t>(o), *outputs[o], made.anywhere_partial());
    if (op.outputs[o].saved && !keeping_.again[id.index]) {
      outputs[o]->count_as(Held::kept);
      kept_outputs_[id.index][o] = outputs[o];
    }
    if (here.output_flow[o] < 0) continue;
    const RatioFlow& flow = program_.flows[static_cast<std::size_t>(here.output_flow[o])];
    add_loss(flow, made, *outputs[o]);
    for (const RatioReaders& group : flow.readers) {
      auto value = carry(group.way, outputs[o], part(group.lie));
      if (!value) return value.error();
      for (const Model::Use& use : group.uses) inputs_[use.op.index][use.input] = *value;
    }
  }
  return {};
}

Expected<void> RatioRank::read_weights(OperatorId id, bool backward, Values& values) {
  const Operator& op = op_of(id);
  const RatioOperator& here = program_of(id);
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    if (backward && !op.inputs[k].saved) continue;
    if (here.input_weight[k] >= 0) values[k] = weights_[static_cast<std::size_t>(here.input_weight[k])].weight;
    if (here.input_tie[k] < 0) continue;
    const auto number = static_cast<std::size_t>(here.input_tie[k]);
    const RatioTie& tie = program_.ties[number];
    if (!tied_[number]) {
      auto there = carry(tie.there, weights_[tie.weight].weight, part(tie.read));
      if (!there) return there.error();
      tied_[number] = std::move(*there);
    }
    values[k] = tie.tie.turned ? transpose_of(report_.ledger, tied_[number]) : tied_[number];
  }
  return {};
}

// Of copies the first one counts, summands all do.
void RatioRank::add_loss(const RatioFlow& flow, const RatioLie& made, const Block& value) {
  if (flow.results == 0 || !first_among(program_.tree, made, me_, Layout::kReplicated)) return;
  const Array& factors = loss_factors(flow.tensor, value.region);
  weighted_sum(factors.data(), value.data.data(), value.data.size(),
               [this, times = flow.results](double sum) { report_.loss += times * sum; });
}

// --- backward ---

// From all readers, those that left it alike summed first, and from the loss; null: none.
Expected<Value> RatioRank::output_gradient(const RatioFlow& flow, const RatioLie& made) {
  const Tensor& tensor = model().tensors[flow.tensor];
  if (!tensor.requires_gradient) return Value();
  Value sum;
  const auto add_to = [&](Value& to, Value more) {
    if (!to) {
      to = std::move(more);
      return;
    }
    add(more->data.data(), to->data.data(), to->data.size());  // kernels and messages leave it to nobody else
  };
  for (const RatioReaders& group : flow.gradients) {
    Value gradient;
    for (const Model::Use& use : group.uses)
      if (Value given = std::exchange(input_gradients_[use.op.index][use.input], nullptr))
        add_to(gradient, std::move(given));
    if (!gradient) {
      gradient = make(tensor, part(group.lie));
      gradient->data.clear();
    }
    auto back = carry(group.way, std::move(gradient), part(made));
    if (!back) return back.error();
    add_to(sum, std::move(*back));
  }
  for (int times = 0; times < flow.results; ++times) {
    Value factors = make(tensor, part(made));
    copy(loss_factors(flow.tensor, part(made)).data(), factors->data.data(), factors->data.size());
    add_to(sum, std::move(factors));
  }
  return sum;
}

Expected<void> RatioRank::backward(OperatorId id) {
  const Operator& op = op_of(id);
  const RatioOperator& here = program_of(id);
  Values gradients(op.outputs.size());
  for (std::size_t o = 0; o < gradients.size(); ++o) {
    if (here.output_flow[o] < 0) continue;
    auto gradient = output_gradient(program_.flows[static_cast<std::size_t>(here.output_flow[o])], here.outputs[o]);
    if (!gradient) return gradient.error();
    if (*gradient) record(Compared::activation_gradient, id, static_cast<std::uint32_t>(o), **gradient);
    gradients[o] = std::move(*gradient);
  }
  if (op.kind == OperatorKind::input) return {};
  if (!op.is_view())
    if (auto done = keeping_.again[id.index] ? run_again(id) : restore(id); !done) return done;
  backward_to_ = id.index;
  Values inputs = std::exchange(inputs_[id.index], Values(op.inputs.size()));
  Values outputs = std::exchange(kept_outputs_[id.index], Values(op.outputs.size())), results(op.inputs.size());
  if (auto done = read_weights(id, true, inputs); !done) return done;
  bool any = false;
  for (std::size_t k = 0; k < results.size(); ++k) any = any || tensor_of(op.inputs[k]).requires_gradient;
  if (any) {
    const Stopwatch watch(*this, id, StepPhase::backward);
    for (std::size_t k = 0; k < results.size(); ++k)
      if (tensor_of(op.inputs[k]).requires_gradient) results[k] = make(tensor_of(op.inputs[k]), part(here.inputs[k]));
    const LocalOperator at = local(id);
    const auto in = pointers_of<const Block>(inputs), out = pointers_of<const Block>(outputs),
               gradient = pointers_of<const Block>(gradients);
    const auto result = pointers_of<Block>(results);
    if (!(fast() && here.kernel.fast_backward && here.kernel.fast_backward(at, in, out, gradient, result))) {
      for (Block* block : result)
        if (block) block->data.clear();
      if (auto done = here.kernel.backward(at, in, out, gradient, result); !done) return done;
    }
  }
  inputs.clear();
  outputs.clear();
  gradients.clear();
  for (std::size_t k = 0; k < results.size(); ++k)
    if (results[k])
      if (auto done = take_gradient(id, k, std::move(results[k])); !done) return done;
  return {};
}

// Of an activation it waits for the producer's backward, of a weight it is added up and summed when all are there.
Expected<void> RatioRank::take_gradient(OperatorId id, std::size_t k, Value gradient) {
  const RatioOperator& here = program_of(id);
  const auto add_up = [&](std::size_t number, const Value& more) {
    Weight& weight = weights_[number];
    if (!weight.gradient)
      weight.gradient =
          std::make_shared<Block>(report_.ledger, more->region, options().gradient_bytes, Held::gradients);
    if (std::exchange(weight.touched, true))
      add(more->data.data(), weight.gradient->data.data(), more->data.size());
    else
      copy(more->data.data(), weight.gradient->data.data(), more->data.size());
  };
  if (here.input_weight[k] >= 0) {
    add_up(static_cast<std::size_t>(here.input_weight[k]), gradient);
  } else if (here.input_tie[k] >= 0) {
    const RatioTie& tie = program_.ties[static_cast<std::size_t>(here.input_tie[k])];
    if (tie.tie.turned) gradient = transpose_of(report_.ledger, gradient);
    if (tie.meets) {
      add_up(tie.weight, gradient);
      return {};
    }
    auto back = carry(tie.back, std::move(gradient), part(program_of(tie.tie.owner).inputs[tie.tie.owner_input]));
    if (!back) return back.error();
    tied_gradients_[tie.weight].push_back(std::move(*back));
  } else {
    input_gradients_[id.index][k] = std::move(gradient);
  }
  return {};
}

Value RatioRank::run_of(Value value, const Region& block) {
  const Region run{{0}, {block.elements()}};
  if (value->region == block) {
    value->region = run;
    return value;
  }
  Value cut = make_block(report_.ledger, run, value->element_bytes);
  copy_overlap(value->region, value->data.data(), block, cut->data.data());
  return cut;
}

Expected<void> RatioRank::reduce_shards(std::size_t number, std::vector<Piece>& pieces) {
  Weight& weight = weights_[number];
  const RatioWeight& of = program_.weights[number];
  Value gradient = std::exchange(weight.gradient, nullptr);
  const Values tied = std::exchange(tied_gradients_[number], {});
  const auto& runs = of.runs_of[me_];
  std::size_t state = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const SharedUpdate& run = of.runs[runs[r]];
    Value mine = r + 1 < runs.size() ? gradient : std::move(gradient);
    auto piece = reduce_shard(number, run, run_of(std::move(mine), run.block), tied, state);
    if (!piece) return piece.error();
    pieces.push_back(std::move(*piece));
    state += static_cast<std::size_t>(run.shard.part[leaf_].elements());
  }
  return {};
}

// Of what other ranks hold alike the sum of the own share of its gradient comes here.
Expected<RatioRank::Piece> RatioRank::reduce_shard(std::size_t number, const SharedUpdate& run, Value gradient,
                                                   const Values& tied, std::size_t state) {
  const RatioWeight& of = program_.weights[number];
  const Region whole = gradient->region, &mine = run.shard.part[leaf_];
  const auto count = static_cast<std::size_t>(mine.elements());
  auto sum = carry(run.scatter, std::move(gradient), mine);
  if (!sum) return sum.error();
  const auto summed = (*sum)->data.data();
  const auto block_of = [&](const Value& value) {
    if (value->region == run.block) return value;
    Value cut = make_block(report_.ledger, whole, value->element_bytes);
    copy_overlap(value->region, value->data.data(), run.block, cut->data.data());
    return cut;
  };
  for (const Value& more : tied) add(block_of(more)->data.data() + mine.offset[0], summed, count);
  if (options().record)
    report_.recorded.push_back(
        {Compared::parameter_gradient, of.op, of.input, run.block, mine.offset[0], 0, numbers_of((*sum)->data)});
  return Piece{number, &run,  run.block,       mine.offset[0],
               count,  state, std::move(*sum), block_of(weights_[number].weight)};
}

Expected<void> RatioRank::reduce(std::size_t number, std::vector<Piece>& pieces) {
  Weight& weight = weights_[number];
  const RatioWeight& of = program_.weights[number];
  if (!of.runs.empty()) return reduce_shards(number, pieces);
  if (!of.sum.move.empty()) {
    auto sum = carry(of.sum, weight.gradient, weight.gradient->region);
    if (!sum) return sum.error();
    copy((*sum)->data.data(), weight.gradient->data.data(), weight.gradient->data.size());
  }
  for (const Value& more : tied_gradients_[number])
    add(more->data.data(), weight.gradient->data.data(), more->data.size());
  tied_gradients_[number].clear();
  record(Compared::parameter_gradient, of.op, of.input, *weight.gradient);
  const Region block = weight.gradient->region;
  pieces.push_back({number, nullptr, block, 0, static_cast<std::size_t>(block.elements()), 0,
                    std::exchange(weight.gradient, nullptr), weight.weight});
  return {};
}

Place RatioRank::state_of(const Piece& piece, const Value& states) const {
  return states->data.size() > 0 ? states->data.data() + std::int64_t(piece.state) : states->data.data();
}

void RatioRank::step_by(Piece& piece) {
  const Weight& weight = weights_[piece.weight];
  const Stopwatch watch(*this, program_.weights[piece.weight].op, StepPhase::update);
  apply(options().rule, options().learning_rate, gradient_of(piece), own_of(piece), {}, state_of(piece, weight.first),
        state_of(piece, weight.second), piece.count);
}

Expected<void> RatioRank::hand_on(Piece& piece) {
  if (!piece.run) return {};
  const OperatorId op = program_.weights[piece.weight].op;
  Value updated = make_block(report_.ledger, piece.run->shard.part[leaf_], options().weight_bytes);
  {
    const Stopwatch watch(*this, op, StepPhase::update);
    copy(own_of(piece), updated->data.data(), piece.count);
  }
  auto all = carry(piece.run->gather, std::move(updated), Region{{0}, {piece.block.elements()}});
  if (!all) return all.error();
  const Block& to = *weights_[piece.weight].weight;
  copy_overlap(piece.block, (*all)->data.data(), to.region, weights_[piece.weight].weight->data.data());
  return {};
}

void RatioRank::end_update(std::size_t number) {
  const RatioWeight& of = program_.weights[number];
  record(Compared::new_parameter, of.op, of.input, *weights_[number].weight);
  weights_[number].touched = false;
}

// In the order in which backward came to the weights. Norms are summed once for all of them, so that all gradients are
// reduced before any weight changes.
Expected<void> RatioRank::update() {
  std::vector<Piece> pieces;
  const auto finish = [&]() -> Expected<void> {
    for (Piece& piece : pieces)
      if (auto done = hand_on(piece); !done) return done;
    return {};
  };
  const bool norms = is_layer_wise(options().rule);
  for (std::size_t w = weights_.size(); w-- > 0;) {
    if (!weights_[w].touched) continue;
    if (!norms) pieces.clear();
    if (auto done = reduce(w, pieces); !done) return done;
    if (norms) continue;
    for (Piece& piece : pieces) step_by(piece);
    if (auto done = finish(); !done) return done;
    end_update(w);
  }
  if (!norms) return {};
  auto stepped = options().rule == UpdateRule::adafactor ? step_factored(pieces) : step_layer_wise(pieces);
  if (!stepped) return stepped;
  if (auto done = finish(); !done) return done;
  for (std::size_t w = weights_.size(); w-- > 0;)
    if (weights_[w].touched) end_update(w);
  return {};
}

}  // namespace turnpoint::step
