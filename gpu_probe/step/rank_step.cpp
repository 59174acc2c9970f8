// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/rank_step.h"

#include <algorithm>
#include <cmath>

#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

RankStep::RankStep(const Program& program, Communicator& communicator)
    : program_(program),
      communicator_(communicator),
      mover_{program.plan->mesh, communicator, report_.ledger},
      shares_(program.operators.size()),
      live_(program.flows.size()),
      unread_(program.flows.size(), 0),
      kept_source_(program.flows.size()),
      kept_shared_(program.flows.size()),
      kept_copy_(program.flows.size()),
      kept_internal_(program.operators.size()),
      kept_tie_(program.ties.size()),
      gradient_(program.flows.size()),
      fetched_(program.operators.size()),
      again_(program.operators.size()),
      rerun_weights_(program.operators.size()),
      repeated_shared_(program.flows.size()),
      restored_source_(program.flows.size()),
      shared_made_(program.flows.size(), 0),
      was_fetched_(program.operators.size()) {
  for (std::size_t i = 0; i < program.operators.size(); ++i) {
    for (const auto& set : program.operators[i].parameters)
      shares_[i].emplace_back(program, OperatorId(i), set, communicator, report_);
    fetched_[i].resize(op_of(OperatorId(i)).inputs.size());
    rerun_weights_[i].resize(op_of(OperatorId(i)).inputs.size());
    was_fetched_[i].resize(op_of(OperatorId(i)).inputs.size());
  }
  for (std::size_t f = 0; f < program.flows.size(); ++f) kept_copy_[f].resize(program.flows[f].consumers.size());
}

// What one step says of itself, and what it begins with.
void RankStep::begin() {
  begin_moments();
  report_.loss = 0;
  report_.traffic.clear();
  first_traffic_.clear();
  report_.recorded.clear();
  report_.unlisted_weight_bytes = report_.inside_bytes = report_.norm_bytes = 0;
  report_.seconds.assign(program_.operators.size(), {});
  for (auto& of_operator : shares_)
    for (auto& share : of_operator) share.begin();
}

void RankStep::begin_micro_batch() {
  report_.idle_repeats = 0;
  report_.runs_again.assign(program_.operators.size(), 0);
  first_traffic_.push_back(report_.traffic.size());
  tick_ = 0;
  shared_made_.assign(program_.flows.size(), 0);
  for (auto& of_operator : was_fetched_) std::fill(of_operator.begin(), of_operator.end(), 0);
  for (std::size_t f = 0; f < program_.flows.size(); ++f) unread_[f] = program_.flows[f].consumers.size();
  for (auto& of_operator : shares_)
    for (auto& share : of_operator) share.begin_micro_batch();
}

std::uint64_t RankStep::seed() const {
  return micro_batch_ == 0 ? program_.options.seed : mixed(program_.options.seed + std::uint64_t(micro_batch_));
}

Expected<void> RankStep::gather_first() {
  if (micro_batch_ > 0) return {};
  for (auto& of_operator : shares_)
    for (auto& share : of_operator)
      if (auto done = share.gather_first(); !done) return done;
  return {};
}

Expected<void> RankStep::run() {
  begin();
  const Moment began = moment();
  for (micro_batch_ = 0; micro_batch_ < program_.options.micro_batches; ++micro_batch_) {
    begin_micro_batch();
    if (auto done = gather_first(); !done) return done;
    report_.before_forward = report_.ledger;
    if (auto done = forward(); !done) return done;
    report_.after_forward = report_.ledger;
    if (auto done = backward(); !done) return done;
  }
  report_.after_backward = report_.ledger;
  // In the order in which backward came to them.
  for (std::size_t i = shares_.size(); i-- > 0;)
    for (auto& share : shares_[i]) {
      if (program_.options.record) share.record(report_.recorded, Compared::parameter_gradient);
      if (auto done = share.update(report_.seconds[i][static_cast<std::size_t>(StepPhase::update)]); !done) return done;
      if (program_.options.record) share.record(report_.recorded, Compared::new_parameter);
      share.end();
    }
  between(began, moment(), [this](double seconds) { report_.seconds_all = seconds; });
  if (auto done = settle(); !done) return done;
  join_traffic();
  return {};
}

// A line for every exchange of the plan, whatever the number of micro-batches. The same collective may be made several
// times in one of them (a resharding that is repeated): the first with the first of the others, and so on.
void RankStep::join_traffic() {
  if (program_.options.micro_batches == 1) return;
  using Line = std::tuple<std::int32_t, std::uint32_t, bool, std::int32_t, std::string, int>;
  std::map<Line, std::size_t> known;
  std::vector<Traffic> joined;
  std::map<Line, int> times;
  auto next = first_traffic_.begin();
  for (std::size_t t = 0; t < report_.traffic.size(); ++t) {
    while (next != first_traffic_.end() && *next == t) ++next, times.clear();
    Traffic& traffic = report_.traffic[t];
    Line line{traffic.reshard, traffic.op.index, traffic.backward, traffic.step, traffic.where, 0};
    const int before = times[line]++;
    std::get<5>(line) = before;
    const auto [at, fresh] = known.try_emplace(line, joined.size());
    if (fresh) {
      joined.push_back(std::move(traffic));
      continue;
    }
    Traffic& sum = joined[at->second];
    sum.planned_bytes += traffic.planned_bytes;
    sum.received_bytes += traffic.received_bytes;
    sum.seconds += traffic.seconds;
    sum.in_place_bytes += traffic.in_place_bytes;
  }
  report_.traffic = std::move(joined);
}

RankStep::Stopwatch::Stopwatch(RankStep& step, OperatorId id, StepPhase phase)
    : step_(step),
      sum_(&step.report_.seconds[id.index][static_cast<std::size_t>(phase)]),
      before_(step.running_),
      since_(moment()) {
  step.running_ = sum_;
}
RankStep::Stopwatch::~Stopwatch() {
  between(since_, moment(), [sum = sum_](double seconds) { *sum += seconds; });
  step_.running_ = before_;
}

// The proof is made of plain loops and copies alone.
bool RankStep::fast() const { return !arithmetic().proves() && !program_.options.plain; }

Value RankStep::make(const Tensor& tensor, const Layout& layout) {
  return make_block(report_.ledger, region_of(mesh(), rank(), layout, tensor.shape),
                    element_bytes(tensor, program_.options));
}

Value RankStep::make_clear(const Tensor& tensor, const Layout& layout) {
  Value value = make(tensor, layout);
  value->data.clear();
  return value;
}

void RankStep::record(Compared kind, OperatorId op, std::uint32_t slot, const Block& block, std::uint32_t partial) {
  if (program_.options.record && last_micro_batch())
    report_.recorded.push_back({kind, op, slot, block.region, 0, partial, numbers_of(block.data)});
}

LocalOperator RankStep::local(OperatorId id) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  LocalOperator at;
  at.model = program_.model;
  at.id = id;
  at.seed = seed();
  std::uint32_t unit_axes = 0;
  for (const auto& dim : op.dims) at.loops.push_back({0, dim.size, dim.size, 1});
  for (int a = 0; a < mesh().count(); ++a) {
    const int loop = here.split.axis[static_cast<std::size_t>(a)];
    if (loop < 0) continue;
    auto& range = at.loops[static_cast<std::size_t>(loop)];
    range.size /= mesh().axes[static_cast<std::size_t>(a)].size;
    range.offset += coordinate(mesh(), rank(), a) * range.size;
    if (op.kind == OperatorKind::recurrent && op.dims[static_cast<std::size_t>(loop)].name == DimName::out_channel)
      unit_axes |= 1u << a;
  }
  if (!program_.options.shares.empty())
    for (std::size_t l = 0; l < at.loops.size(); ++l) at.loops[l].shares = program_.options.shares[id.index][l];
  if (!program_.options.parts.empty() && !program_.options.parts[id.index].empty())
    at.parts = &program_.options.parts[id.index];
  at.adds_once = position_of(mesh(), rank(), here.sum_axes) == 0;
  if (unit_axes == 0) return at;

  const Group group = group_of(mesh(), rank(), unit_axes);
  const auto me = static_cast<std::size_t>(position_of(mesh(), rank(), unit_axes));
  // Between [rows][all units] and the pieces of the group's members, each [rows][its units].
  const auto counted = [this](const Moment& since) {
    between(since, moment(), [running = running_](double seconds) {
      if (running) *running -= seconds;
    });
    report_.inside_bytes += static_cast<double>(communicator_.take_received()) * program_.options.floating_bytes;
  };
  const auto cuts_of = [n = group.size()](std::size_t size) {
    Cuts cuts;
    for (std::size_t i = 0; i <= n; ++i) cuts.push_back(static_cast<std::int64_t>(i * size));
    return cuts;
  };
  const auto columns = [](std::int64_t rows, std::size_t units, std::size_t first) {
    return Region{{0, static_cast<std::int64_t>(first)}, {rows, static_cast<std::int64_t>(units)}};
  };
  at.gather_units = [=, this](ConstNumbers mine, std::int64_t rows, Numbers all) -> Expected<void> {
    const std::size_t units = mine.size() / static_cast<std::size_t>(rows);
    const Cuts cuts = cuts_of(mine.size());
    Array pieces = Array::scratch_like(mine.data(), group.size() * mine.size());
    copy(mine.data(), pieces.data() + cuts[me], mine.size());
    communicator_.take_received();
    const Moment since = moment();
    if (auto done = communicator_.all_gather(group, cuts, pieces.numbers()); !done) return done.error();
    counted(since);
    for (std::size_t i = 0; i < group.size(); ++i)
      copy_overlap(columns(rows, units, i * units), pieces.data() + cuts[i], columns(rows, group.size() * units, 0),
                   all.data());
    return {};
  };
  at.scatter_units = [=, this](ConstNumbers all, std::int64_t rows, Numbers own) -> Expected<void> {
    const std::size_t units = own.size() / static_cast<std::size_t>(rows);
    const Cuts cuts = cuts_of(own.size());
    Array pieces = Array::scratch_like(all.data(), all.size());
    for (std::size_t i = 0; i < group.size(); ++i)
      copy_overlap(columns(rows, group.size() * units, 0), all.data(), columns(rows, units, i * units),
                   pieces.data() + cuts[i]);
    communicator_.take_received();
    const Moment since = moment();
    if (auto done = communicator_.reduce_scatter(group, cuts, pieces.numbers()); !done) return done.error();
    counted(since);
    copy(pieces.data() + cuts[me], own.data(), own.size());
    return {};
  };
  return at;
}

// Drawn once and counted whenever it is there.
Value RankStep::generated(const Tensor& tensor, TensorId id, const Layout& layout) {
  const Region region = region_of(mesh(), rank(), layout, tensor.shape);
  const int bytes = element_bytes(tensor, program_.options);
  Array& drawn = data_[{micro_batch_, id, layout}];
  if (drawn.size() == 0) {
    drawn = Array::outside(static_cast<std::size_t>(region.elements()));
    Filling numbers(drawn.data());
    for_each_element(region, tensor.shape, [&](std::size_t, std::int64_t index) {
      numbers.add(data_value(tensor, id, seed(), static_cast<std::uint64_t>(index)));
    });
  }
  Array loaded(drawn.size(), bytes);
  copy(drawn.data(), loaded.data(), drawn.size());
  return std::make_shared<Block>(report_.ledger, region, bytes, std::move(loaded), true);
}

Expected<Value> RankStep::move(const PlanReshard& reshard, ReshardRole role, Layout from, const Tensor& tensor,
                               Value value, const std::string& where) {
  const auto& steps = reshard.steps(role);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::int64_t in_place = 0;
    communicator_.take_received();
    const Moment since = moment();
    auto moved = execute(mover_, steps[i], from, tensor.shape, value, in_place);
    if (!moved) {
      Error error = moved.error();
      if (error.where == "plan") error.where = program_.model->name + ": " + where;
      return error;
    }
    const double bytes = value->element_bytes;
    Traffic traffic;
    traffic.where = where;
    traffic.reshard = static_cast<std::int32_t>(&reshard - program_.plan->reshards.data());
    traffic.op = reshard.producer;
    traffic.backward = role != ReshardRole::forward;
    traffic.step = static_cast<std::int32_t>(reshard.first_in_backward(role) + i);
    traffic.move = steps[i].move;
    traffic.planned_bytes = steps[i].bytes;
    traffic.received_bytes = static_cast<double>(communicator_.take_received()) * bytes;
    traffic.in_place_bytes = static_cast<double>(in_place) * bytes;
    report_.traffic.push_back(std::move(traffic));
    between(since, moment(),
            [this, line = report_.traffic.size() - 1](double seconds) { report_.traffic[line].seconds = seconds; });
    value = std::move(*moved);
    from = steps[i].result;
  }
  return value;
}

// The transpose of a matrix.
Value RankStep::turned(Ledger& ledger, const Value& value) {
  const Region& r = value->region;
  Value result = make_block(ledger, {{r.offset[1], r.offset[0]}, {r.extent[1], r.extent[0]}}, value->element_bytes);
  transpose(value->data.data(), r.extent[0], r.extent[1], result->data.data());
  return result;
}

// Weights that the operator reads now: all in forward and where it runs again, in backward those it saves.
Expected<void> RankStep::read_weights(OperatorId id, bool backward_only, bool rerun, Values& weights) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  const auto want = [&](std::size_t k) { return !backward_only || op.inputs[k].saved || here.along[k]; };
  std::vector<bool> listed(op.inputs.size(), false), beyond(op.inputs.size(), false);
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    if (!here.owned[k] || weights[k] || !want(k)) continue;
    // A run in backward reads them all; what its backward would not read comes along, or is listed for that run.
    (backward_only && !op.inputs[k].saved && !here.along[k] ? beyond : listed)[k] = true;
  }
  for (auto& share : shares_[id.index]) {
    if (auto done = share.read(listed, false, weights); !done) return done;
    if (auto done = share.read(beyond, true, weights); !done) return done;
  }
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    if (here.input_tie[k] < 0 || weights[k] || !want(k)) continue;
    const auto number = static_cast<std::size_t>(here.input_tie[k]);
    const Tie& tie = program_.ties[number];
    const bool in_forward = !backward_only && !rerun;
    // The owner's weight is read again whether or not a copy was kept, since the plan lists a gather for every read.
    Values of_owner(op_of(tie.owner).inputs.size());
    std::vector<bool> one(of_owner.size(), false);
    one[tie.owner_input] = true;
    for (auto& share : shares_[tie.owner.index])
      if (auto done = share.read(one, rerun && !op.inputs[k].saved, of_owner); !done) return done;
    Value value = of_owner[tie.owner_input];
    const Tensor& held = tensor_of(op_of(tie.owner).inputs[tie.owner_input]);
    if (in_forward && tie.way.moves()) {
      Value counted =
          std::make_shared<Block>(report_.ledger, value->region, program_.options.floating_bytes, value->data, true);
      auto moved = move(*tie.way.reshard, ReshardRole::forward, tie.way.start, held, std::move(counted),
                        op.name + ": tied weight");
      if (!moved) return moved.error();
      value = std::move(*moved);
      if (tie.way.keeps_copy()) {
        value->count_as(Held::kept);
        kept_tie_[number] = value;
      }
    } else if (tie.way.moves()) {
      if (!kept_tie_[number]) return bad_input("plan: a tied weight's copy is not kept", program_.model->name);
      value = kept_tie_[number];
    }
    weights[k] = tie.turned ? turned(report_.ledger, value) : value;
  }
  return {};
}

}  // namespace turnpoint::step
