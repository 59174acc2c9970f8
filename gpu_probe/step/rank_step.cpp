// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/rank_step.h"

#include <algorithm>
#include <cmath>

#include "gpu_probe/job/output.h"
#include "gpu_probe/step/numbers.h"

namespace turnpoint::step::TURNPOINT_REAL {

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
  report_.loss = 0;
  report_.traffic.clear();
  report_.recorded.clear();
  report_.unlisted_weight_bytes = report_.inside_bytes = 0;
  report_.idle_repeats = 0;
  report_.runs_again.assign(program_.operators.size(), 0);
  report_.seconds.assign(program_.operators.size(), {});
  tick_ = 0;
  shared_made_.assign(program_.flows.size(), 0);
  for (auto& of_operator : was_fetched_) std::fill(of_operator.begin(), of_operator.end(), 0);
  for (std::size_t f = 0; f < program_.flows.size(); ++f) unread_[f] = program_.flows[f].consumers.size();
  for (auto& of_operator : shares_)
    for (auto& share : of_operator) share.begin();
}

Expected<void> RankStep::run() {
  begin();
  report_.before_forward = report_.ledger;
  if (auto done = forward(); !done) return done;
  report_.after_forward = report_.ledger;
  if (auto done = backward(); !done) return done;
  report_.after_backward = report_.ledger;
  // In the order in which backward came to them.
  for (std::size_t i = shares_.size(); i-- > 0;)
    for (auto& share : shares_[i]) {
      if (program_.options.record) share.record(report_.recorded, Compared::parameter_gradient);
      if (auto done = share.update(report_.seconds[i][static_cast<std::size_t>(StepPhase::update)]); !done) return done;
      if (program_.options.record) share.record(report_.recorded, Compared::new_parameter);
      share.end();
    }
  return {};
}

RankStep::Stopwatch::Stopwatch(RankStep& step, OperatorId id, StepPhase phase)
    : step_(step),
      sum_(step.report_.seconds[id.index][static_cast<std::size_t>(phase)]),
      since_(probe::host_clock()),
      inside_(step.inside_s_) {}
RankStep::Stopwatch::~Stopwatch() { sum_ += probe::host_clock() - since_ - (step_.inside_s_ - inside_); }

// The proof is made of plain loops and copies alone.
bool RankStep::fast() const { return std::is_same_v<Real, float> && !program_.options.plain; }

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
  if (program_.options.record)
    report_.recorded.push_back({kind, op, slot, block.region, 0, partial, {block.data.begin(), block.data.end()}});
}

LocalOperator RankStep::local(OperatorId id) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  LocalOperator at;
  at.model = program_.model;
  at.id = id;
  at.seed = program_.options.seed;
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
  at.adds_once = position_of(mesh(), rank(), here.sum_axes) == 0;
  if (unit_axes == 0) return at;

  const Group group = group_of(mesh(), rank(), unit_axes);
  const auto me = static_cast<std::size_t>(position_of(mesh(), rank(), unit_axes));
  // Between [rows][all units] and the pieces of the group's members, each [rows][its units].
  const auto counted = [this](double since) {
    inside_s_ += probe::host_clock() - since;
    report_.inside_bytes += static_cast<double>(communicator_.take_received()) * program_.options.floating_bytes;
  };
  at.gather_units = [this, group, me, counted](const std::vector<Real>& mine,
                                               std::int64_t rows) -> Expected<std::vector<Real>> {
    const std::size_t n = group.size(), units = mine.size() / static_cast<std::size_t>(rows);
    Cuts cuts;
    for (std::size_t i = 0; i <= n; ++i) cuts.push_back(static_cast<std::int64_t>(i * mine.size()));
    std::vector<Real> pieces(n * mine.size()), all(n * mine.size());
    std::copy(mine.begin(), mine.end(), pieces.begin() + cuts[me]);
    communicator_.take_received();
    const double since = probe::host_clock();
    if (auto done = communicator_.all_gather(group, cuts, pieces); !done) return done.error();
    counted(since);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
        for (std::size_t u = 0; u < units; ++u) all[(r * n + i) * units + u] = pieces[i * mine.size() + r * units + u];
    return all;
  };
  at.scatter_units = [this, group, me, counted](const std::vector<Real>& all,
                                                std::int64_t rows) -> Expected<std::vector<Real>> {
    const std::size_t n = group.size(), size = all.size() / n, units = size / static_cast<std::size_t>(rows);
    Cuts cuts;
    for (std::size_t i = 0; i <= n; ++i) cuts.push_back(static_cast<std::int64_t>(i * size));
    std::vector<Real> pieces(all.size());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
        for (std::size_t u = 0; u < units; ++u) pieces[i * size + r * units + u] = all[(r * n + i) * units + u];
    communicator_.take_received();
    const double since = probe::host_clock();
    if (auto done = communicator_.reduce_scatter(group, cuts, pieces); !done) return done.error();
    counted(since);
    return std::vector<Real>(pieces.begin() + cuts[me], pieces.begin() + cuts[me + 1]);
  };
  return at;
}

// Drawn once and counted whenever it is there.
Value RankStep::generated(const Tensor& tensor, TensorId id, const Layout& layout) {
  const Region region = region_of(mesh(), rank(), layout, tensor.shape);
  const int bytes = element_bytes(tensor, program_.options);
  Array& drawn = data_[{id, layout}];
  if (drawn.size() == 0) {
    drawn = Array::outside(static_cast<std::size_t>(region.elements()));
    const bool buffer = tensor.role == TensorRole::buffer;
    for_each_element(region, tensor.shape, [&](std::size_t i, std::int64_t index) {
      const double draw = counter_uniform(program_.options.seed, id.index * 8ull, static_cast<std::uint64_t>(index));
      drawn[i] = static_cast<Real>(!is_floating(tensor.type) ? std::floor(draw * 97)
                                   : buffer                  ? 0.5 + draw
                                                             : 2 * draw - 1);
    });
  }
  Array loaded(drawn.size(), bytes);
  std::copy(drawn.begin(), drawn.end(), loaded.begin());
  return std::make_shared<Block>(report_.ledger, region, bytes, std::move(loaded), true);
}

Expected<Value> RankStep::move(const PlanReshard& reshard, bool backward, std::size_t first, std::size_t last,
                               Layout from, const Tensor& tensor, Value value, const std::string& where) {
  const auto& steps = backward ? reshard.backward : reshard.forward;
  for (std::size_t i = first; i < last; ++i) {
    std::int64_t in_place = 0;
    communicator_.take_received();
    const double since = probe::host_clock();
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
    traffic.backward = backward;
    traffic.step = static_cast<std::int32_t>(i);
    traffic.move = steps[i].move;
    traffic.planned_bytes = steps[i].bytes;
    traffic.received_bytes = static_cast<double>(communicator_.take_received()) * bytes;
    traffic.in_place_bytes = static_cast<double>(in_place) * bytes;
    traffic.seconds = probe::host_clock() - since;
    report_.traffic.push_back(std::move(traffic));
    value = std::move(*moved);
    from = steps[i].result;
  }
  return value;
}

// The transpose of a matrix.
Value RankStep::turned(Ledger& ledger, const Value& value) {
  const Region& r = value->region;
  Value result = make_block(ledger, {{r.offset[1], r.offset[0]}, {r.extent[1], r.extent[0]}}, value->element_bytes);
  for (std::int64_t i = 0; i < r.extent[0]; ++i)
    for (std::int64_t j = 0; j < r.extent[1]; ++j)
      result->data[static_cast<std::size_t>(j * r.extent[0] + i)] =
          value->data[static_cast<std::size_t>(i * r.extent[1] + j)];
  return result;
}

// Weights that the operator reads now: all in forward and where it runs again, in backward those it saves.
Expected<void> RankStep::read_weights(OperatorId id, bool backward_only, bool rerun, Values& weights) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  const auto want = [&](std::size_t k) {
    return !backward_only || op.inputs[k].saved || here.reads_unsaved[k] || here.along[k];
  };
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
      auto moved = move(*tie.way.reshard, false, 0, tie.way.reshard->forward.size(), tie.way.start, held,
                        std::move(counted), op.name + ": tied weight");
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

}  // namespace turnpoint::step::TURNPOINT_REAL
