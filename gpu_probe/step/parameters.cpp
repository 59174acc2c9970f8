// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/parameters.h"

#include <algorithm>
#include <cmath>

#include "gpu_probe/step/numbers.h"

namespace turnpoint::step {

namespace {

enum Stream : std::uint64_t { kWeight = 1, kFirst = 2, kSecond = 3 };

// A run of elements as a block of one dimension.
Value make_run(Ledger& ledger, std::int64_t elements, int bytes, Held held) {
  return std::make_shared<Block>(ledger, Region{{0}, {elements}}, bytes, held);
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
    starts_.push_back(starts_.back() + regions_.back().elements());
  }
  mine_ = piece_of(communicator.rank());
  generate();
}

std::string ParameterShare::where(const char* what) const {
  return program_.model->operators[op_].name + std::string(": ") + what;
}

ParameterShare::Span ParameterShare::cut(Span from, int position, int parts) const {
  const std::int64_t size = (from.end - from.begin + parts - 1) / parts;
  return {std::min(from.end, from.begin + position * size), std::min(from.end, from.begin + (position + 1) * size)};
}

ParameterShare::Span ParameterShare::piece_of(int rank) const {
  const Mesh& mesh = program_.plan->mesh;
  Span piece{0, length()};
  for (const auto& step : set_.sync)
    if (step.move != ReshardMove::all_reduce)
      piece = cut(piece, position_of(mesh, rank, step.axes), static_cast<int>(mesh.size_of(step.axes)));
  return piece;
}

// Weights around +-1.5 / sqrt(fan), vectors in 0.5 .. 1.5 (scales) so that no path of a network is dead.
void ParameterShare::generate() {
  const StepOptions& options = program_.options;
  const bool shard = program_.operators[op_.index].choice.update == Update::sharded_weights && set_.shards;
  const bool offload = program_.operators[op_.index].choice.offload;
  const Span held = shard ? mine_ : Span{0, length()};
  const std::int64_t own = mine_.end - mine_.begin;
  weights_ = make_run(report_.ledger, held.end - held.begin, options.weight_bytes, Held::parameters);
  const int state = options.optimizer_bytes;
  // Both states are counted in the first; what the host keeps is not the device's.
  first_ = make_run(report_.ledger, own, offload ? 0 : state, Held::optimizer);
  second_ = make_run(report_.ledger, own, 0, Held::optimizer);
  if (offload) report_.host_bytes += own * state;
  const Operator& described = program_.model->operators[op_];
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    TensorId id = described.inputs[set_.inputs[p]].tensor;
    const Tensor& tensor = program_.model->tensors[id];
    if (tensor.tied_to.valid()) id = tensor.tied_to;
    const double fan = std::sqrt(static_cast<double>(tensor.elements()));
    const Region& r = regions_[p];
    for (std::int64_t i = 0; i < r.elements(); ++i) {
      std::int64_t rest = i, index = 0, stride = 1;
      for (std::size_t d = r.extent.size(); d-- > 0;) {
        index += (r.offset[d] + rest % r.extent[d]) * stride;
        stride *= tensor.shape[d];
        rest /= r.extent[d];
      }
      const auto draw = [&](std::uint64_t stream) {
        return counter_uniform(options.seed, id.index * 8ull + stream, static_cast<std::uint64_t>(index));
      };
      const double drawn =
          tensor.shape.size() < 2 ? 0.5 + draw(kWeight) : (2 * draw(kWeight) - 1) * 1.5 / std::sqrt(fan);
      const double weight = options.initial ? options.initial(id, index, drawn) : drawn;
      const std::int64_t at = starts_[p] + i;
      if (at >= held.begin && at < held.end) weights_->data[static_cast<std::size_t>(at - held.begin)] = weight;
      if (at < mine_.begin || at >= mine_.end) continue;
      first_->data[static_cast<std::size_t>(at - mine_.begin)] = 0.02 * draw(kFirst) - 0.01;
      second_->data[static_cast<std::size_t>(at - mine_.begin)] = 0.01 + 0.01 * draw(kSecond);
    }
  }
}

// Brings the wanted parts of the run to all holders; each sends what lies in its own piece.
Expected<void> ParameterShare::gather(const std::vector<Span>& wanted, std::vector<double>& all,
                                      std::int64_t& received) {
  const Group group = group_of(program_.plan->mesh, communicator_.rank(), set_.shards);
  std::vector<double> compact;
  Cuts cuts{0};
  std::vector<Span> parts;
  for (const int member : group) {
    const Span piece = piece_of(member);
    for (const Span& w : wanted) {
      const Span part{std::max(piece.begin, w.begin), std::min(piece.end, w.end)};
      if (part.begin >= part.end) continue;
      parts.push_back(part);
      for (std::int64_t i = part.begin; i < part.end; ++i)
        compact.push_back(member == communicator_.rank() ? all[static_cast<std::size_t>(i)] : 0);
    }
    cuts.push_back(static_cast<std::int64_t>(compact.size()));
  }
  communicator_.take_received();
  if (auto done = communicator_.all_gather(group, cuts, compact); !done) return done;
  received = communicator_.take_received();
  auto from = compact.begin();
  for (const Span& part : parts) {
    std::copy(from, from + (part.end - part.begin), all.begin() + part.begin);
    from += part.end - part.begin;
  }
  return {};
}

Expected<void> ParameterShare::read(const std::vector<bool>& wanted, bool unlisted, std::vector<Value>& weights) {
  const StepOptions& options = program_.options;
  const bool shard = program_.operators[op_.index].choice.update == Update::sharded_weights && set_.shards;
  std::vector<double> all;
  if (shard) {
    std::vector<Span> spans;
    for (std::size_t p = 0; p < regions_.size(); ++p)
      if (wanted[set_.inputs[p]]) spans.push_back({starts_[p], starts_[p + 1]});
    if (spans.empty()) return {};
    all.assign(static_cast<std::size_t>(length()), 0);
    std::copy(weights_->data.begin(), weights_->data.end(), all.begin() + mine_.begin);
    std::int64_t received = 0;
    if (auto done = gather(spans, all, received); !done) return done;
    const double bytes = static_cast<double>(received) * options.weight_bytes;
    if (unlisted) {
      report_.unlisted_weight_bytes += bytes;
    } else {
      if (gather_traffic_ < 0) {
        gather_traffic_ = static_cast<std::int64_t>(report_.traffic.size());
        Traffic traffic{where("weights"), ReshardMove::all_gather, 0, 0, 0};
        for (const auto& step : set_.gathers) traffic.planned_bytes += step.bytes;
        report_.traffic.push_back(std::move(traffic));
      }
      report_.traffic[static_cast<std::size_t>(gather_traffic_)].received_bytes += bytes;
    }
  }
  const std::vector<double>& run = shard ? all : weights_->data;
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    if (!wanted[set_.inputs[p]]) continue;
    // A whole weight is there already and costs nothing more; a gathered one lives for the moment.
    Value block = make_block(report_.ledger, regions_[p], shard ? options.weight_bytes : 0);
    std::copy(run.begin() + starts_[p], run.begin() + starts_[p + 1], block->data.begin());
    weights[set_.inputs[p]] = std::move(block);
  }
  return {};
}

void ParameterShare::add_gradient(std::uint32_t input, const Block& gradient) {
  if (!gradient_) {
    const bool whole = !set_.shards || program_.operators[op_.index].choice.update == Update::sharded_state;
    gradient_ =
        make_run(report_.ledger, length(), program_.options.gradient_bytes, whole ? Held::gradients : Held::momentary);
  }
  for (std::size_t p = 0; p < regions_.size(); ++p)
    if (set_.inputs[p] == input)
      for (std::size_t i = 0; i < gradient.data.size(); ++i)
        gradient_->data[static_cast<std::size_t>(starts_[p]) + i] += gradient.data[i];
}

Expected<void> ParameterShare::synchronise() {
  const Mesh& mesh = program_.plan->mesh;
  Span held{0, length()};
  std::vector<double> run = gradient_->data;
  for (const auto& step : set_.sync) {
    const Group group = group_of(mesh, communicator_.rank(), step.axes);
    communicator_.take_received();
    if (step.move == ReshardMove::all_reduce) {
      if (auto done = communicator_.all_reduce(group, run); !done) return done;
    } else {
      const int parts = static_cast<int>(group.size()), me = position_of(mesh, communicator_.rank(), step.axes);
      Cuts cuts{0};
      for (int i = 0; i < parts; ++i) cuts.push_back(cut(held, i, parts).end - held.begin);
      if (step.move == ReshardMove::reduce_scatter)
        if (auto done = communicator_.reduce_scatter(group, cuts, run); !done) return done;
      const Span mine = cut(held, me, parts);
      run = {run.begin() + (mine.begin - held.begin), run.begin() + (mine.end - held.begin)};
      held = mine;
    }
    report_.traffic.push_back({where("gradient"), step.move, step.bytes,
                               static_cast<double>(communicator_.take_received()) * program_.options.gradient_bytes,
                               0});
  }
  if (set_.shards && program_.operators[op_.index].choice.update != Update::sharded_state)
    gradient_ = make_run(report_.ledger, held.end - held.begin, program_.options.gradient_bytes, Held::gradients);
  // Stage 1 keeps the room of the whole gradient, but only the own piece is summed.
  std::copy(run.begin(), run.end(), gradient_->data.begin());
  return {};
}

Expected<void> ParameterShare::update() {
  const StepOptions& options = program_.options;
  const bool shard = program_.operators[op_.index].choice.update == Update::sharded_weights && set_.shards;
  for (std::int64_t i = 0; i < mine_.end - mine_.begin; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double g = gradient_->data[at];
    double& w = weights_->data[shard ? at : static_cast<std::size_t>(mine_.begin + i)];
    double &m = first_->data[at], &v = second_->data[at];
    switch (options.rule) {
      case UpdateRule::sgd: w -= options.learning_rate * g; break;
      case UpdateRule::momentum:
        m = 0.9 * m + g;
        w -= options.learning_rate * m;
        break;
      case UpdateRule::adam:
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        w -= options.learning_rate * m / (std::sqrt(v) + 1e-8);
        break;
    }
  }
  if (!set_.spread) return {};
  // What others update is theirs to send: nothing of it may be left from before.
  for (std::int64_t i = 0; i < length(); ++i)
    if (i < mine_.begin || i >= mine_.end) weights_->data[static_cast<std::size_t>(i)] = std::nan("");
  std::int64_t received = 0;
  if (auto done = gather({{0, length()}}, weights_->data, received); !done) return done;
  report_.traffic.push_back({where("new weights"), ReshardMove::all_gather, set_.spread->bytes,
                             static_cast<double>(received) * options.weight_bytes, 0});
  return {};
}

void ParameterShare::record(std::vector<Recorded>& out, Compared kind) const {
  const bool gradient = kind == Compared::parameter_gradient;
  const bool sharded_weights = program_.operators[op_.index].choice.update == Update::sharded_weights && set_.shards;
  const Span held = gradient || sharded_weights ? mine_ : Span{0, length()};
  const auto& run = gradient ? gradient_->data : weights_->data;
  for (std::size_t p = 0; p < regions_.size(); ++p) {
    const Span part{std::max(held.begin, starts_[p]), std::min(held.end, starts_[p + 1])};
    if (part.begin >= part.end) continue;
    out.push_back({kind,
                   op_,
                   set_.inputs[p],
                   regions_[p],
                   part.begin - starts_[p],
                   0,
                   {run.begin() + (part.begin - held.begin), run.begin() + (part.end - held.begin)}});
  }
}

}  // namespace turnpoint::step
