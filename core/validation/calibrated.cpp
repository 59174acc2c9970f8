// SPDX-License-Identifier: Apache-2.0
#include "core/validation/calibrated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/text.h"
#include "core/cost/calibration.h"
#include "core/cost/local_sizes.h"
#include "core/cost/operator_cost.h"
#include "core/cost/row_alignment.h"
#include "core/model/operator_kind.h"
#include "core/plan/reprice.h"
#include "core/validation/compare.h"

namespace turnpoint {

namespace {

constexpr double kLeastTime = 1e-12;  ///< seconds; what a profile accepts
constexpr double kApart = 1.5;        ///< ratio of two sizes from which launch and bytes are told apart
constexpr double kAmbiguous = 1.1;    ///< ratio of times from which operators of one signature are told apart
constexpr double kAround = 2;         ///< how far beyond the measured sizes earlier samples are dropped

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

class Calibration {
 public:
  explicit Calibration(const Cluster& cluster) : cluster_(cluster) {}

  void take(const CalibrationRun& run) {
    Scenario scenario = *run.scenario;
    scenario.settings.kernels = Kernels::fused;  // the probe's are
    const Model& model = *scenario.model;
    // Only work is asked of it: what the links are does not matter. Times are those of this machine as it is, whatever
    // factors the scenario supposes.
    const ReshardingModel resharding(run.plan->mesh, CollectiveModel(*scenario.cluster, {}), 1);
    const TensorUses uses = analyse_tensor_uses(model);
    const OperatorCostModel costs(scenario, uses, resharding, run.micro_batches);
    const double slower = run.micro_batches > 1 ? times_of_additions(costs, run) : 1;
    const auto summing = [&](const MeasuredPhase& phase) {
      const PlanOperator& planned = run.plan->operators[phase.op.index];
      return phase.phase == StepPhase::backward ? slower * costs.accumulation_s(phase.op, planned.split, planned.choice)
                                                : 0;
    };
    for (const MeasuredPhase& phase : run.measurement->phases) {
      if (phase.op.index >= run.plan->operators.size() || phase.time.samples == 0) continue;
      const int times = phase.phase == StepPhase::update ? 1 : run.micro_batches;
      const double seconds = measured_seconds(*run.measurement, phase.time) / times;
      if (seconds < kLeastTime) continue;
      const PlanOperator& planned = run.plan->operators[phase.op.index];
      if (phase.phase == StepPhase::update)
        add_update(costs.update_bytes(phase.op, planned.split, planned.choice), seconds, scenario);
      else
        add_operator(scenario, costs, *run.plan, planned, phase.phase == StepPhase::backward, seconds - summing(phase));
    }
    if (run.measurement->mode == StepMode::ranks)
      for (const MeasuredExchange& exchange : run.measurement->exchanges) add_exchange(run, exchange);
    // Of several nodes it is not said which link a transfer went over.
    if (scenario.cluster->nodes == 1)
      for (const MeasuredTransfer& transfer : run.measurement->transfers) add_transfer(run, transfer);
  }

  Cluster finish(std::vector<std::string>& notes) {
    operators(notes);
    collectives(notes);
    return std::move(cluster_);
  }

 private:
  struct Signature {
    std::string kind;
    std::vector<std::int64_t> dims;
    Precision precision = Precision::fp32;
    std::string phase;
    friend auto operator<=>(const Signature&, const Signature&) = default;
  };
  using Family = std::tuple<std::string, std::string, Precision>;  ///< fitted kind, phase
  /// Of one signature, operators that do the same work: name and work.
  using Work = std::tuple<double, double, double>;  ///< FLOP, bytes, launches
  using Same = std::pair<std::string, Work>;

  /// How many times as long as predicted what sums of gradients are priced by has taken: additions of activations, or
  /// updates (OperatorCostModel::adds_as_updates()).
  static double times_of_additions(const OperatorCostModel& costs, const CalibrationRun& run) {
    double measured[2] = {}, predicted[2] = {};
    for (const MeasuredPhase& phase : run.measurement->phases) {
      if (phase.op.index >= run.plan->operators.size() || phase.time.samples == 0) continue;
      const bool update = phase.phase == StepPhase::update;
      const bool addition = phase.phase == StepPhase::forward &&
                            run.scenario->model->operators[phase.op].kind == OperatorKind::elementwise;
      if (!update && !addition) continue;
      const PlanOperator& planned = run.plan->operators[phase.op.index];
      CostBreakdown cost = costs.cost(phase.op, planned.split, planned.choice).breakdown;
      measured[update] += measured_seconds(*run.measurement, phase.time) / (update ? 1 : run.micro_batches);
      predicted[update] += cost[update ? ComputePart::update : ComputePart::forward];
    }
    const int by = costs.adds_as_updates() || predicted[0] <= 0 ? 1 : 0;
    return predicted[by] > 0 ? measured[by] / predicted[by] : 1;
  }

  void add_operator(const Scenario& scenario, const OperatorCostModel& costs, const Plan& plan,
                    const PlanOperator& planned, bool backward, double seconds) {
    const Operator& op = scenario.model->operators[planned.op];
    const PhaseWork work = costs.work(op, planned.split, backward);
    // Where all of it should be sums of gradients, or zeros that gradients begin with, nothing is known of the kernel.
    seconds -= costs.beside_s(work);
    if (seconds < kLeastTime) return;
    if (op.dims.empty() || op.is_view() || op.kind == OperatorKind::input || work.flop + work.bytes <= 0) return;
    const std::string phase = backward ? "backward" : "forward";
    std::string fitted = fitted_kind(*scenario.model, op);
    const Precision precision = scenario.settings.precision;
    const std::vector<std::int64_t> local = local_dims(op, plan.mesh, planned.split);
    if (precision == Precision::bf16) fitted = fitted_kind_of(fitted, rows_of(*scenario.model, op, local));
    times_[{std::string(record_of(op.kind).timed_as), local, precision, phase}]
          [{fitted, {work.flop, work.bytes, work.launches}}]
              .push_back(seconds);
    ++operator_times_;
  }

  void add_update(double bytes, double seconds, const Scenario& scenario) {
    if (bytes <= 0) return;
    rows_[{kUpdateKind, kUpdateKind, scenario.settings.precision}][{0, bytes, 1}].push_back(seconds);
    ++operator_times_;
  }

  void add_exchange(const CalibrationRun& run, const MeasuredExchange& exchange) {
    if (!exchange.time || exchange.time->samples == 0 || exchange.move == ReshardMove::slice) return;
    const ReshardStep* step = nullptr;
    std::vector<ReshardStep> list;
    int times = run.micro_batches;
    const auto pick = [&](const std::vector<ReshardStep>& steps) {
      if (exchange.step >= 0 && static_cast<std::size_t>(exchange.step) < steps.size())
        step = &steps[static_cast<std::size_t>(exchange.step)];
    };
    if (exchange.reshard >= 0 && static_cast<std::size_t>(exchange.reshard) < run.plan->reshards.size()) {
      const PlanReshard& reshard = run.plan->reshards[static_cast<std::size_t>(exchange.reshard)];
      pick(exchange.backward ? list = reshard.backward() : reshard.forward);
    } else if (exchange.reshard < 0 && exchange.op.index < run.plan->operators.size()) {
      const PlanOperator& owner = run.plan->operators[exchange.op.index];
      pick(list = all_steps(owner.parameters));
      if (step) times = times_an_iteration(owner.parameters, owner.choice.update, times)[std::size_t(exchange.step)];
    }
    if (!step || step->move != exchange.move) return;
    const auto asked = collective_of(run.plan->mesh, *step);
    const double seconds = measured_seconds(*run.measurement, *exchange.time) / times;
    if (!asked || asked->group.size < 2 || asked->full_bytes < 1 || seconds < kLeastTime) return;
    exchanges_[{asked->kind, asked->group}][asked->full_bytes].push_back(seconds);
    ++exchange_times_;
  }

  void add_transfer(const CalibrationRun& run, const MeasuredTransfer& transfer) {
    const double seconds = measured_seconds(*run.measurement, transfer.time);
    if (transfer.received_bytes < 1 || seconds < kLeastTime) return;
    exchanges_[{Collective::send, DeviceGroup{2, 1, 2, 1}}][transfer.received_bytes].push_back(seconds);
    ++exchange_times_;
  }

  void operators(std::vector<std::string>& notes) {
    if (operator_times_ == 0) return;
    std::set<std::tuple<std::string, Precision>> kinds;
    int ambiguous = 0;
    std::vector<OperatorSample> samples;
    for (const auto& [signature, by_work] : times_) {
      kinds.insert({signature.kind, signature.precision});
      std::vector<double> each, all;
      for (const auto& [same, times] : by_work) {
        const auto& [fitted, work] = same;
        each.push_back(median(times));
        all.insert(all.end(), times.begin(), times.end());
        rows_[{fitted, signature.phase, signature.precision}][work].push_back(each.back());
      }
      const auto [least, most] = std::minmax_element(each.begin(), each.end());
      if (*most > kAmbiguous * *least) {
        ++ambiguous;
        continue;
      }
      samples.push_back({signature.kind, signature.dims, signature.precision, signature.phase, median(all)});
    }
    std::erase_if(cluster_.operators, [&](const OperatorSample& old) {
      return kinds.count({old.kind, old.precision}) > 0;
    });
    cluster_.operators.insert(cluster_.operators.end(), samples.begin(), samples.end());
    // Steps that were run found their numbers where steps find them: such times need no warm ones beside them.
    for (std::vector<OperatorFit>* fits : {&cluster_.fits, &cluster_.warm_fits})
      std::erase_if(*fits, [&](const OperatorFit& old) {
        return rows_.count({old.kind, old.phase, old.precision}) > 0;
      });
    for (const auto& [family, sizes] : rows_)
      if (auto fit = fitted(family, sizes)) cluster_.fits.push_back(std::move(*fit));
    notes.push_back(fmt::format(
        "operators: {} times of steps that were run give {} signatures and constants for {} kinds and phases{}",
        operator_times_, samples.size(), rows_.size(),
        ambiguous == 0 ? std::string() : fmt::format("; {} signatures stand for operators that differ", ambiguous)));
  }

  using Sizes = std::map<Work, std::vector<double>>;  ///< seconds

  static std::optional<OperatorFit> fitted(const Family& family, const Sizes& sizes) {
    const auto& [kind, phase, precision] = family;
    std::vector<MeasuredWork> rows;
    for (const auto& [work, times] : sizes) {
      const auto [flop, bytes, launches] = work;
      MeasuredWork row;
      row.name = kind;
      row.phase = phase;
      row.precision = precision;
      row.time_s = median(times);
      row.parts = {{kind, {flop, bytes, 0, 0, launches}}};
      rows.push_back(std::move(row));
    }
    // Without FLOP (the update) there are two constants to tell apart, by as few sizes if these lie apart.
    const bool moves_only =
        std::all_of(sizes.begin(), sizes.end(), [](const auto& size) { return std::get<0>(size.first) == 0; });
    const double least = std::get<1>(sizes.begin()->first), most = std::get<1>(sizes.rbegin()->first);
    if (rows.size() >= std::size_t(kSizesOfFit) || (moves_only && rows.size() >= 2 && most > kApart * least)) {
      auto fits = fit_operators(rows);
      if (!fits.empty()) return fits.front();
    }
    // Too few sizes to tell launch, FLOP and bytes apart: one rate, of what there is more of in such operators.
    OperatorFit fit{kind, phase, precision, 0, 0, 0, static_cast<int>(rows.size())};
    const bool of_flop =
        kind.starts_with("matmul") || kind.starts_with("convolution") || kind == "attention" || kind == "recurrent";
    std::vector<double> rates;
    for (const auto& row : rows) {
      const PhaseWork& work = row.parts.front().work;
      const double size = of_flop ? work.flop : work.bytes;
      if (size > 0) rates.push_back(row.time_s / size);
    }
    if (rates.empty()) return std::nullopt;
    (of_flop ? fit.s_per_flop : fit.s_per_byte) = median(rates);
    return fit;
  }

  void collectives(std::vector<std::string>& notes) {
    if (exchange_times_ == 0) return;
    std::size_t samples = 0;
    for (const auto& [which, sizes] : exchanges_) {
      const auto& [kind, group] = which;
      const double least = sizes.begin()->first / kAround, most = sizes.rbegin()->first * kAround;
      std::erase_if(cluster_.collectives, [&, kind = kind, group = group](const CollectiveSample& old) {
        return old.kind == kind && old.group == group && old.bytes >= least && old.bytes <= most;
      });
      for (const auto& [bytes, times] : sizes) {
        CollectiveSample sample{kind, group, bytes, median(times), 0, 0};
        cluster_.collectives.push_back(sample);
        ++samples;
      }
    }
    notes.push_back(fmt::format("collectives: {} times of steps that were run give {} sizes of {} kinds and groups",
                                exchange_times_, samples, exchanges_.size()));
    if (exchanges_.empty()) return;
    // What was run were ranks of ours, whatever the profile's library: they send in rings.
    cluster_.library = Library::ring;
    cluster_.overlap_slowdown = 1;  // and compute while nothing is sent
    for (LinkLevel& link : cluster_.links) link.launch_s = 0, link.switch_reduces = false;
    for (const int level : {kIntraNode, kInterNode}) link(level, notes);
  }

  /// Latency and bandwidth that serve the groups nobody ran: relative least squares of time = steps a + sent / B over
  /// what was run, both not negative.
  void link(int level, std::vector<std::string>& notes) {
    LinkLevel& link = cluster_.links[static_cast<std::size_t>(level)];
    double ss = 0, sb = 0, bb = 0, s = 0, b = 0;
    std::set<double> sizes;
    for (const auto& [which, by_size] : exchanges_) {
      const auto& [kind, group] = which;
      if ((group.nodes > 1) != (level == kInterNode)) continue;
      for (const auto& [bytes, times] : by_size) {
        // What the formula makes of latency and bandwidth of one, so that sharing between groups counts as it does
        // there.
        const double time = median(times), asked = kind == Collective::all_to_all ? bytes / group.size : bytes;
        const double steps = formula(kind, group, asked, 1, 1e30) / time,
                     sent = formula(kind, group, asked, 0, 1) / time;
        ss += steps * steps, sb += steps * sent, bb += sent * sent, s += steps, b += sent;
        sizes.insert(bytes);
      }
    }
    if (sizes.empty()) return;
    const double det = ss * bb - sb * sb;
    double latency = 0, per_byte = bb > 0 ? b / bb : 0;
    if (det > 1e-9 * ss * bb) {
      latency = (s * bb - b * sb) / det;
      per_byte = (b * ss - s * sb) / det;
      if (latency < 0) latency = 0, per_byte = b / bb;
      if (per_byte < 0) per_byte = 0, latency = s / ss;
    }
    if (!(per_byte > 0)) return;
    link.latency_s = latency;
    link.bandwidth = 1 / per_byte;
    link.origin = Origin::calibrated;
    notes.push_back(fmt::format("link {}: {:.3g} GB/s and {} a step, from exchanges of steps that were run",
                                level == kIntraNode ? "inside a node" : "between nodes", link.bandwidth / 1e9,
                                format_seconds(latency)));
  }

  double formula(Collective kind, const DeviceGroup& group, double bytes, double latency, double bandwidth) const {
    Cluster plain;
    plain.nodes = cluster_.nodes;
    plain.devices_per_node = cluster_.devices_per_node;
    for (auto& link : plain.links) link.latency_s = latency, link.bandwidth = bandwidth;
    return CollectiveModel(plain, {}).time(kind, group, bytes).value;
  }

  Cluster cluster_;
  std::map<Signature, std::map<Same, std::vector<double>>> times_;
  std::map<Family, Sizes> rows_;
  std::map<std::pair<Collective, DeviceGroup>, std::map<double, std::vector<double>>> exchanges_;
  int operator_times_ = 0, exchange_times_ = 0;
};

}  // namespace

ClusterPtr calibrated_with(const ClusterPtr& cluster, const std::vector<CalibrationRun>& runs,
                           std::vector<std::string>& notes) {
  Calibration calibration(*cluster);
  for (const auto& run : runs)
    if (run.scenario && run.plan && run.measurement) calibration.take(run);
  std::vector<std::string> made;
  Cluster result = calibration.finish(made);
  if (made.empty()) return cluster;
  notes.insert(notes.end(), made.begin(), made.end());
  result.notes.insert(result.notes.end(), made.begin(), made.end());
  return std::make_shared<const Cluster>(std::move(result));
}

}  // namespace turnpoint
