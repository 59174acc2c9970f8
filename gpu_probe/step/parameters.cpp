// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/parameters.h"

#include <algorithm>
#include <cmath>

#include "core/model/shard_format.h"
#include "gpu_probe/step/values/drawn.h"
#include "gpu_probe/step/values/numbers.h"
#include "gpu_probe/step/ways.h"

namespace turnpoint::step {

namespace {

// A run of elements as a block of one dimension.
Value make_run(Ledger& ledger, std::int64_t elements, int bytes, Held held) {
  return std::make_shared<Block>(ledger, Region{{0}, {elements}}, bytes, held);
}

// Of which `counted` elements are more than padding.
Value make_run(Ledger& ledger, std::int64_t elements, std::int64_t counted, int bytes, Held held) {
  auto run =
      std::make_shared<Block>(ledger, Region{{0}, {counted}}, bytes, Array(static_cast<std::size_t>(elements)), true);
  run->count_as(held);
  return run;
}

Numbers numbers_in(Block& block, std::int64_t first, std::int64_t count) {
  return {block.data.data() + first, static_cast<std::size_t>(count)};
}

}  // namespace

ParameterShare::ParameterShare(const Program& program, OperatorId op, const ParameterSet& set,
                               Communicator& communicator, StepReport& report)
    : program_(program), op_(op), set_(set), communicator_(communicator), report_(report) {
  const Operator& described = program.model->operators[op];
  starts_.push_back(0);
  for (const auto input : set.inputs) {
    const Tensor& tensor = program.model->tensors[described.inputs[input].tensor];
    regions_.push_back(
        region_of(program.plan->mesh, communicator.rank(), program.operators[op.index].inputs[input], tensor.shape));
    starts_.push_back(starts_.back() + padded(regions_.back()));
  }
  mine_ = piece_of(communicator.rank());
  generate();
}

// Shards of whole rows are as many rows on every device, those of tiles as many tiles: the last ones are filled up with
// zeros.
std::int64_t ParameterShare::padded(const Region& region) const {
  const MemoryChoice& choice = program_.operators[op_.index].choice;
  const std::int64_t elements = region.elements();
  if (!set_.shards) return elements;
  const std::int64_t shards = program_.plan->mesh.size_of(set_.shards);
  if (!choice.whole_rows || !sharded_weights()) {
    const bool sums_rows = program_.options.rule == UpdateRule::adafactor && region.extent.size() >= 2;
    return choice.tiles ? turnpoint::padded_elements(region.extent, shards, sums_rows) : elements;
  }
  if (region.extent.empty()) return elements;
  const std::int64_t rows = region.extent[0];
  return (rows + shards - 1) / shards * shards * (elements / rows);
}

// A whole run is counted without what fills up its shards, which is there while they travel.
std::int64_t ParameterShare::filled() const {
  std::int64_t elements = 0;
  for (const Region& region : regions_) elements += region.elements();
  return elements;
}

void ParameterShare::begin() { touched_.assign(regions_.size(), false); }

void ParameterShare::begin_micro_batch() {
  if (passes()) touched_.assign(regions_.size(), false);
  reads_.assign(regions_.size(), 0);
  gather_traffic_.assign(set_.gathers.size(), -1);
}

bool ParameterShare::sharded_weights() const {
  return program_.operators[op_.index].choice.update == Update::sharded_weights && set_.shards;
}
bool ParameterShare::sharded_gradient() const {
  return set_.shards && program_.operators[op_.index].choice.update != Update::sharded_state;
}

bool ParameterShare::passes() const {
  const bool each = sums_every_micro_batch(program_.operators[op_.index].choice.update);
  return sharded_gradient() || (each && program_.options.micro_batches > 1);
}

std::size_t ParameterShare::place_of(std::uint32_t input) const {
  return static_cast<std::size_t>(std::find(set_.inputs.begin(), set_.inputs.end(), input) - set_.inputs.begin());
}

// A line of the report for the plan's step of this number within the set.
Traffic& ParameterShare::traffic(const char* what, const ReshardStep& step, std::size_t index) {
  Traffic& line = report_.traffic.emplace_back();
  line.where = where(what);
  line.op = op_;
  line.step = set_.first_step + static_cast<std::int32_t>(index);
  line.move = step.move;
  line.planned_bytes = step.bytes;
  return line;
}

// Since then the last line's exchange has gone on.
void ParameterShare::tell_seconds(const Moment& since) {
  between(since, moment(), [&report = report_, line = report_.traffic.size() - 1](double seconds) {
    report.traffic[line].seconds = seconds;
  });
}

std::string ParameterShare::where(const char* what) const {
  return program_.model->operators[op_].name + std::string(": ") + what;
}

ParameterShare::Span ParameterShare::cut(Span from, int position, int parts) const {
  const std::int64_t size = (from.end - from.begin + parts - 1) / parts;
  return {std::min(from.end, from.begin + position * size), std::min(from.end, from.begin + (position + 1) * size)};
}

ParameterShare::Span ParameterShare::within(Span part, std::size_t p) const {
  return {std::max(part.begin, starts_[p]), std::min(part.end, starts_[p] + regions_[p].elements())};
}

ParameterShare::Span ParameterShare::piece_of(int rank) const {
  const Mesh& mesh = program_.plan->mesh;
  Span piece{0, length()};
  for (const auto& step : set_.sync)
    if (step.move != ReshardMove::all_reduce)
      piece = cut(piece, position_of(mesh, rank, step.axes), static_cast<int>(mesh.size_of(step.axes)));
  return piece;
}

void ParameterShare::clear_padding(Array& run, Span held) const {
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    const Span part{std::max(held.begin, starts_[p] + regions_[p].elements()), std::min(held.end, starts_[p + 1])};
    if (part.begin < part.end) fill(run.data() + (part.begin - held.begin), 0, static_cast<std::size_t>(part.size()));
  }
}

// Weights around +-1.5 / sqrt(fan), vectors in 0.5 .. 1.5 (scales) so that no path of a network is dead.
void ParameterShare::generate() {
  const StepOptions& options = program_.options;
  const bool shard = sharded_weights();
  const bool offload = program_.operators[op_.index].choice.offload;
  const Span held = shard ? mine_ : Span{0, length()};
  const std::int64_t own = mine_.end - mine_.begin;
  weights_ =
      make_run(report_.ledger, held.size(), shard ? held.size() : filled(), options.weight_bytes, Held::parameters);
  const int state = options.optimizer_bytes;
  // Both states are counted in the first; what the host keeps is not the device's.
  const bool drawn_now = !draws_state_late();
  const bool has_first = states_of(options.rule) > 0 && drawn_now,
             has_second = states_of(options.rule) == 2 && drawn_now;
  const auto room = [&](bool there) {
    const auto size = static_cast<std::size_t>(there ? own : 0);
    return offload ? Array::outside(size) : Array::whole(size);
  };
  // A byte count of 0 beside real numbers: they are counted in the first, or are the host's.
  const auto state_of = [&](bool there, int counted) {
    Array numbers = room(there);
    const std::int64_t rows = counted > 0 ? own : static_cast<std::int64_t>(numbers.size());
    return std::make_shared<Block>(report_.ledger, Region{{0}, {rows}}, counted, std::move(numbers), true);
  };
  first_ = state_of(has_first, offload ? 0 : state);
  first_->count_as(Held::optimizer);
  second_ = state_of(has_second, 0);
  master_ = room(kept_bytes() < arithmetic().whole_bytes);
  if (offload) report_.host_bytes += own * state;
  clear_padding(weights_->data, held);
  if (options.rule == UpdateRule::adafactor) draw_factors();
  if (options.quick) return generate_quickly();
  draw_run(held, DrawnFor::weight, weights_->data.data());
  if (first_->data.size() > 0) draw_run(mine_, DrawnFor::first_state, first_->data.data());
  if (second_->data.size() > 0) draw_run(mine_, DrawnFor::second_state, second_->data.data());
  if (master_.size() > 0) draw_run(mine_, DrawnFor::weight, master_.data());
}

// Brings the wanted parts of the run to all holders; each sends what lies in its own piece.
Expected<void> ParameterShare::gather(const ReshardStep* step, const std::vector<Span>& wanted, Array& all,
                                      std::int64_t& received) {
  const Group group = group_of(program_.plan->mesh, communicator_.rank(), set_.shards);
  const CollectiveWay way = step ? way_of(program_.plan->mesh, *step) : CollectiveWay();
  communicator_.take_received();
  const bool everything = wanted.size() == 1 && wanted[0].begin == 0 && wanted[0].end == length();
  Cuts cuts{0};
  bool in_order = everything;
  for (const int member : group) {
    const Span piece = piece_of(member);
    in_order = in_order && piece.begin == cuts.back();
    cuts.push_back(piece.end);
  }
  if (in_order && cuts.back() == length()) {
    if (auto done = all_gather(communicator_, way, group, cuts, all.numbers()); !done) return done;
    received = communicator_.take_received();
    return {};
  }
  std::int64_t total = 0;
  for (const Span& w : wanted) total += w.size();
  Array compact = Array::scratch(static_cast<std::size_t>(total));
  cuts = {0};
  std::vector<Span> parts;
  for (const int member : group) {
    const Span piece = piece_of(member);
    std::int64_t at = cuts.back();
    for (const Span& w : wanted) {
      const Span part{std::max(piece.begin, w.begin), std::min(piece.end, w.end)};
      if (part.begin >= part.end) continue;
      parts.push_back(part);
      if (member == communicator_.rank())
        copy(all.data() + part.begin, compact.data() + at, static_cast<std::size_t>(part.size()));
      at += part.size();
    }
    cuts.push_back(at);
  }
  if (auto done = all_gather(communicator_, way, group, cuts, {compact.data(), static_cast<std::size_t>(cuts.back())});
      !done)
    return done;
  received = communicator_.take_received();
  std::int64_t from = 0;
  for (const Span& part : parts) {
    copy(compact.data() + from, all.data() + part.begin, static_cast<std::size_t>(part.size()));
    from += part.size();
  }
  return {};
}

// The plan lists a gather for what is read at all, one for what is read twice, and so on: each part of what came
// belongs to the gather of its own number.
void ParameterShare::count_gather(const std::vector<std::size_t>& places, double bytes, const Moment& since) {
  double all = 0;
  for (const auto p : places) all += static_cast<double>(regions_[p].elements());
  const Moment until = moment();
  for (const auto p : places) {
    const std::size_t number = std::min(reads_[p]++, set_.gathers.size() - 1);
    auto& index = gather_traffic_[number];
    if (index < 0) {
      index = static_cast<std::int64_t>(report_.traffic.size());
      traffic("weights", set_.gathers[number], number);
    }
    Traffic& line = report_.traffic[static_cast<std::size_t>(index)];
    const double share = static_cast<double>(regions_[p].elements()) / all;
    line.received_bytes += bytes * share;
    between(since, until, [&report = report_, index = static_cast<std::size_t>(index), share](double seconds) {
      report.traffic[index].seconds += seconds * share;
    });
  }
}

Expected<void> ParameterShare::read(const std::vector<bool>& wanted, bool unlisted, std::vector<Value>& weights) {
  const StepOptions& options = program_.options;
  const bool shard = sharded_weights();
  std::vector<std::size_t> places;
  for (std::size_t p = 0; p < regions_.size(); ++p)
    if (wanted[set_.inputs[p]]) places.push_back(p);
  if (places.empty()) return {};
  Array run = weights_->data;
  if (shard) {
    const Moment since = moment();
    std::vector<Span> spans;
    for (const auto p : places) {
      const bool next = !spans.empty() && spans.back().end == starts_[p];
      if (next)
        spans.back().end = starts_[p + 1];
      else
        spans.push_back({starts_[p], starts_[p + 1]});
    }
    run = Array(static_cast<std::size_t>(length()));
    copy(weights_->data.data(), run.data() + mine_.begin, weights_->data.size());
    std::int64_t received = 0;
    if (auto done = gather(set_.gathers.empty() ? nullptr : &set_.gathers.front(), spans, run, received); !done)
      return done;
    const double bytes = static_cast<double>(received) * options.weight_bytes;
    if (unlisted)
      report_.unlisted_weight_bytes += bytes;
    else
      count_gather(places, bytes, since);
  }
  // A whole weight is there already and costs nothing more; a gathered one lives for the moment.
  for (const auto p : places)
    weights[set_.inputs[p]] = std::make_shared<Block>(
        report_.ledger, regions_[p], shard ? options.weight_bytes : 0,
        run.part(static_cast<std::size_t>(starts_[p]), static_cast<std::size_t>(regions_[p].elements())), true);
  return {};
}

// The run of all gradients: there until the update where it is whole, else for the moment.
Block& ParameterShare::whole_gradient() {
  Value& run = passes() ? passing_ : gradient_;
  if (!run)
    run = make_run(report_.ledger, length(), filled(), program_.options.gradient_bytes,
                   passes() ? Held::momentary : Held::gradients);
  return *run;
}

Value ParameterShare::gradient_target(std::uint32_t input) {
  const std::size_t p = place_of(input);
  if (p == regions_.size() || touched_[p]) return nullptr;
  Block& run = whole_gradient();
  touched_[p] = true;
  return std::make_shared<Block>(
      report_.ledger, regions_[p], program_.options.gradient_bytes,
      run.data.part(static_cast<std::size_t>(starts_[p]), static_cast<std::size_t>(regions_[p].elements())), false);
}

void ParameterShare::add_gradient(std::uint32_t input, const Value& gradient, bool own, double& seconds) {
  const std::size_t p = place_of(input);
  if (p == regions_.size()) return;
  if (Value& run = passes() ? passing_ : gradient_; own && !run && regions_.size() == 1 &&
                                                    regions_[0].elements() == length() &&
                                                    gradient->element_bytes == program_.options.gradient_bytes) {
    run = gradient;
    if (!passes()) run->count_as(Held::gradients);
    touched_[p] = true;
    return;
  }
  const Moment since = moment();
  const Place to = whole_gradient().data.data() + starts_[p];
  const ConstPlace from = gradient->data.data();
  if (to == from) return;
  if (touched_[p])
    add(from, to, gradient->data.size());
  else
    copy(from, to, gradient->data.size());
  touched_[p] = true;
  between(since, moment(), [&seconds](double passed) { seconds += passed; });
}

Expected<void> ParameterShare::synchronise(bool last) {
  if (!last && !passes()) return {};
  const Mesh& mesh = program_.plan->mesh;
  Block& run = whole_gradient();
  for (std::size_t p = 0; p < regions_.size(); ++p)
    if (!touched_[p]) fill(run.data.data() + starts_[p], 0, static_cast<std::size_t>(starts_[p + 1] - starts_[p]));
  clear_padding(run.data, {0, length()});
  Span held{0, length()};
  for (std::size_t i = 0; i < set_.sync.size(); ++i) {
    const ReshardStep& step = set_.sync[i];
    const Group group = group_of(mesh, communicator_.rank(), step.axes);
    const CollectiveWay way = way_of(mesh, step);
    communicator_.take_received();
    const Moment since = moment();
    if (step.move == ReshardMove::all_reduce) {
      if (auto done = all_reduce(communicator_, way, group, numbers_in(run, held.begin, held.size())); !done)
        return done;
    } else {
      const int parts = static_cast<int>(group.size()), me = position_of(mesh, communicator_.rank(), step.axes);
      Cuts cuts{0};
      for (int part = 0; part < parts; ++part) cuts.push_back(cut(held, part, parts).end - held.begin);
      if (step.move == ReshardMove::reduce_scatter)
        if (auto done = reduce_scatter(communicator_, way, group, cuts, numbers_in(run, held.begin, held.size()));
            !done)
          return done;
      held = cut(held, me, parts);
    }
    Traffic& line = traffic("gradient", step, set_.gathers.size() + i);
    line.received_bytes = static_cast<double>(communicator_.take_received()) * program_.options.gradient_bytes;
    tell_seconds(since);
  }
  // Stage 1 keeps the room of the whole gradient, but only the own piece is summed.
  const bool first = !gradient_;
  if (first) gradient_ = make_run(report_.ledger, held.size(), program_.options.gradient_bytes, Held::gradients);
  const Place from = run.data.data() + held.begin, to = gradient_->data.data();
  const auto count = static_cast<std::size_t>(held.size());
  if (passes() && !first)
    add(from, to, count);
  else if (to != from)
    copy(from, to, count);
  passing_.reset();
  return {};
}

Expected<void> ParameterShare::update(double& seconds) {
  const StepOptions& options = program_.options;
  const Moment since = moment();
  const auto count = static_cast<std::size_t>(mine_.size());
  // State that the host keeps visits the device for the update: here its room is all there is to that.
  const bool visits = program_.operators[op_.index].choice.offload;
  const auto state_bytes = static_cast<std::size_t>(options.optimizer_bytes);
  const Array visiting =
      Array::whole(visits ? count * state_bytes / static_cast<std::size_t>(arithmetic().whole_bytes) : 0);
  const ConstPlace gradient = gradient_->data.data();
  const Place own = weights_->data.data() + (sharded_weights() ? 0 : mine_.begin);
  if (is_layer_wise(options.rule)) {
    auto done = options.rule == UpdateRule::adafactor ? update_factored(gradient, own, seconds)
                                                      : update_layer_wise(gradient, own, seconds);
    if (!done) return done;
  } else if (draws_state_late())
    update_by_parts(gradient, own);
  else
    apply(options.rule, options.learning_rate, gradient, own, master_.data(), first_->data.data(), second_->data.data(),
          count);
  between(since, moment(), [&seconds](double passed) { seconds += passed; });
  return gathers_first() ? Expected<void>{} : spread();
}

bool ParameterShare::gathers_first() const {
  return set_.spread && program_.operators[op_.index].choice.gathers_first();
}

Expected<void> ParameterShare::gather_first() { return gathers_first() ? spread() : Expected<void>{}; }

Expected<void> ParameterShare::spread() {
  if (!set_.spread) return {};
  // What others update is theirs to send: in the proof nothing of it may be left from before.
  if (program_.options.record)
    for (const Span& others : {Span{0, mine_.begin}, Span{mine_.end, length()}})
      fill(weights_->data.data() + others.begin, std::nanf(""), static_cast<std::size_t>(others.size()));
  const Moment began = moment();
  std::int64_t received = 0;
  if (auto done = gather(&*set_.spread, {{0, length()}}, weights_->data, received); !done) return done;
  Traffic& line = traffic("new weights", *set_.spread, set_.gathers.size() + set_.sync.size());
  line.received_bytes = static_cast<double>(received) * program_.options.weight_bytes;
  tell_seconds(began);
  return {};
}

void ParameterShare::record(std::vector<Recorded>& out, Compared kind) const {
  const bool gradient = kind == Compared::parameter_gradient;
  const Span held = gradient || sharded_weights() ? mine_ : Span{0, length()};
  // Weights that are gathered before forward are whole again in the next step.
  const Span known = gradient || gathers_first() ? mine_ : held;
  const auto& run = gradient ? gradient_->data : weights_->data;
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    const Span part = within(known, p);
    if (part.begin >= part.end) continue;
    const Array here =
        run.part(static_cast<std::size_t>(part.begin - held.begin), static_cast<std::size_t>(part.size()));
    out.push_back({kind, op_, set_.inputs[p], regions_[p], part.begin - starts_[p], 0, numbers_of(here)});
  }
}

}  // namespace turnpoint::step
