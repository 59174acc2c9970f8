// SPDX-License-Identifier: Apache-2.0
// Placements by chance of small models on 1, 2, 3, 4 and 8 ranks: what the placed step computes is what the whole model
// on one rank computes, and what arrives is what the graph's edges say.
#include <QtTest>
#include <random>
#include <set>

#include "core/schedule/training_graph.h"
#include "core/simulation/simulator.h"
#include "core/validation/placement_step.h"
#include "gpu_probe/placements.h"
#include "gpu_probe/recurrent_models.h"
#include "gpu_probe/step/placement_program.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

namespace {

ScenarioPtr scenario_of(const ModelPtr& model, int devices) {
  const std::string hardware = "v100-16gb-1x" + std::to_string(devices);
  auto cluster = cluster_preset(hardware);
  if (!model || !cluster) qFatal("no such model or hardware");
  Settings settings;
  settings.batch = model->batch;
  auto scenario = make_scenario(model, *cluster, hardware, settings);
  if (!scenario) qFatal("%s", scenario.error().message().c_str());
  return *scenario;
}

StepJob job_of(const Scenario& scenario, const PlacementPlan& plan) {
  auto job = step_job_of(scenario, plan, {});
  if (!job) qFatal("%s", job.error().message().c_str());
  return *job;
}

/// The tensors that one edge of the graph stands for, by what its two tasks are; gradients told apart by their maker.
std::set<std::pair<TensorId, bool>> tensors_of_edge(const Model& model, const PlacementPlan& plan, TaskIndex from,
                                                    TaskIndex to) {
  std::set<std::pair<TensorId, bool>> tensors;
  const Operator &maker = model.operators[plan.operator_of[from]], &reader = model.operators[plan.operator_of[to]];
  const auto made_by_maker = [&](TensorId stored) {
    return std::any_of(maker.outputs.begin(), maker.outputs.end(), [&](const Access& a) { return a.tensor == stored; });
  };
  if (plan.role[from] == TaskRole::forward && plan.operator_of[from] == plan.operator_of[to]) {
    for (const Access& access : maker.outputs)
      if (access.saved) tensors.insert({access.tensor, false});
  } else if (plan.role[from] == TaskRole::forward) {
    for (const Access& access : reader.inputs)
      if (const TensorId stored = storage_of(model, access.tensor); made_by_maker(stored))
        if (plan.role[to] == TaskRole::forward || access.saved) tensors.insert({stored, false});
  } else if (plan.role[from] == TaskRole::backward && plan.operator_of[from] != plan.operator_of[to]) {
    for (const Access& access : maker.inputs)
      for (const Access& output : reader.outputs)
        if (storage_of(model, access.tensor) == output.tensor && model.tensors[access.tensor].requires_gradient)
          tensors.insert({output.tensor, true});
  }
  return tensors;
}

/// Into how many tasks of the graph an operator's forward or backward was divided; of a gradient, how many positions.
std::map<std::pair<OperatorId, TaskRole>, std::int64_t> divisions(const PlacementPlan& plan) {
  std::map<std::pair<OperatorId, TaskRole>, std::int64_t> of;
  for (TaskIndex t = 0; t < plan.graph->task_count(); ++t) ++of[{plan.operator_of[t], plan.role[t]}];
  for (auto& [key, count] : of)
    if (key.second == TaskRole::backward)
      for (TaskIndex t = 0; t < plan.graph->task_count(); ++t)
        if (plan.operator_of[t] == key.first && plan.graph->names[t].find("-reverse") != std::string_view::npos) {
          count /= 2;  // each direction has its summand of the whole gradient
          break;
        }
  return of;
}

/// What is wrong with the bytes of a placed step whose weights travel; empty: nothing. A transfer carries what the
/// simulator counts; where a time step sends states and outputs, which are one tensor to the simulator, no more than
/// the edges that cross.
std::string fault_of_bytes(const PlacementPlan& plan, const StepJob& job, const std::vector<double>& received) {
  const auto& listed = job.placement->transfers;
  if (received.size() != listed.size()) return "other transfers";
  for (std::size_t t = 0; t < listed.size(); ++t) {
    const TaskIndex from = listed[t].task;
    const bool stepwise = job.model->operators[plan.operator_of[from]].kind == OperatorKind::recurrent &&
                          job.placement->tasks[from].step >= 0;
    double all = 0;
    for (EdgeIndex e = plan.graph->out_begin[from]; e < plan.graph->out_begin[from + 1]; ++e)
      if (plan.placement.device[plan.graph->out_to[e]] == listed[t].to) all += double(plan.graph->out_bytes[e]);
    const auto planned = double(listed[t].bytes);
    if (stepwise ? received[t] < planned || received[t] > all : received[t] != planned)
      return std::string(plan.graph->names[from]) + ": received " + std::to_string(received[t]) + ", simulated " +
             std::to_string(planned);
  }
  return {};
}

struct Counts {
  int placements = 0, transfers = 0, several = 0;
  double bytes = 0, worst = 0;
};

/// What is wrong with a placed step; empty: nothing.
std::string fault(const Scenario& scenario, const PlacementPlan& plan, Counts& counts) {
  const Model& model = *scenario.model;
  const StepJob job = job_of(scenario, plan);
  const auto proof = step::prove_placement(job);
  if (!proof) return proof.error().message();
  for (const double error : {proof->loss_error, proof->activation_error, proof->gradient_error, proof->update_error}) {
    if (!(error < test::kRounding)) return "differs by " + std::to_string(error) + " at " + proof->where;
    counts.worst = std::max(counts.worst, error);
  }
  // Bytes by the edges of the graph that cross, the tensors of one task to one device counted once.
  const auto run = step::run_placement(step::in_double(), job, test::step_options(scenario.settings));
  if (!run) return run.error().message();
  if (!plan.made_with.whole_layers) {
    counts.transfers += int(job.placement->transfers.size());
    ++counts.placements;
    return fault_of_bytes(plan, job, run->received_bytes);
  }
  std::map<std::pair<TaskIndex, std::uint32_t>, std::set<std::pair<TensorId, bool>>> sent;
  for (TaskIndex t = 0; t < plan.graph->task_count(); ++t)
    for (const TaskIndex to : plan.graph->successors(t))
      if (plan.placement.device[t] != plan.placement.device[to]) {
        const auto tensors = tensors_of_edge(model, plan, t, to);
        sent[{t, plan.placement.device[to]}].insert(tensors.begin(), tensors.end());
      }
  const auto parts = divisions(plan);
  const auto& listed = job.placement->transfers;
  if (sent.size() != listed.size() || run->received_bytes.size() != listed.size()) return "other transfers";
  for (std::size_t t = 0; t < listed.size(); ++t) {
    double bytes = 0;
    const auto& tensors = sent.at({listed[t].task, listed[t].to});
    for (const auto& [tensor, gradient] : tensors) {
      const double size = double(model.tensors[tensor].elements()) *
                          element_bytes(model.tensors[tensor], scenario.settings.precision) /
                          double(parts.at({plan.operator_of[listed[t].task], plan.role[listed[t].task]}));
      bytes += size;
    }
    const std::string name(plan.graph->names[listed[t].task]);
    if (run->received_bytes[t] != bytes)
      return name + ": received " + std::to_string(run->received_bytes[t]) + ", the edges say " + std::to_string(bytes);
    if (bytes != double(listed[t].bytes))
      return name + ": received " + std::to_string(bytes) + ", simulated " + std::to_string(listed[t].bytes);
    counts.several += tensors.size() > 1;
    counts.bytes += bytes;
  }
  counts.transfers += int(listed.size());
  ++counts.placements;
  return {};
}

}  // namespace

class StepPlacementTest : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::in_double()};

 private slots:
  void by_chance_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<bool>("unrolled");
    QTest::addColumn<bool>("whole_layers");
    for (const bool whole_layers : {true, false})
      for (const bool unrolled : {false, true}) {
        const auto& models = unrolled ? test::recurrent_models() : test::step_models();
        for (int i = 0; i < int(models.size()); ++i)
          QTest::addRow("%s%s", models[std::size_t(i)].name, whole_layers ? "" : ", weights travel")
              << i << unrolled << whole_layers;
      }
  }
  /// Whole operators, and recurrent ones as their time steps; layers kept whole, and every task on any device.
  void by_chance() {
    QFETCH(int, model);
    QFETCH(bool, unrolled);
    QFETCH(bool, whole_layers);
    const auto& models = unrolled ? test::recurrent_models() : test::step_models();
    Counts counts;
    std::mt19937_64 random(static_cast<std::uint64_t>(model) + 5);
    for (const int devices : {1, 2, 3, 4, 8}) {
      const auto scenario = scenario_of(models[std::size_t(model)].make(), devices);
      for (int trial = 0; trial < (devices == 1 ? 2 : 4); ++trial) {
        const auto plan = test::placement_by_chance(*scenario, random, trial % 2 == 1, unrolled, whole_layers);
        QVERIFY(!unrolled || plan.operator_of.size() > test::placement_by_chance(*scenario, random, false).role.size());
        const std::string found = fault(*scenario, plan, counts);
        QVERIFY2(found.empty(),
                 (std::to_string(devices) + " devices, trial " + std::to_string(trial) + ": " + found).c_str());
      }
    }
    qInfo("%d placements, %d transfers of %.0f bytes, %d of several tensors, largest difference %.1e",
          counts.placements, counts.transfers, counts.bytes, counts.several, counts.worst);
    QVERIFY(counts.transfers > 50);
  }

  /// Several steps go on with the weights of the one before, on all ranks alike.
  void several_steps() {
    const auto scenario = scenario_of(test::block(), 3);
    std::mt19937_64 random(1);
    const auto options = test::step_options(scenario->settings);
    const auto plan = test::placement_by_chance(*scenario, random, true);
    const auto first = step::run_placement(step::in_double(), job_of(*scenario, plan), options);
    const auto third = step::run_placement(step::in_double(), job_of(*scenario, plan), options, 3);
    const auto elsewhere = step::run_placement(
        step::in_double(), job_of(*scenario, test::placement_by_chance(*scenario, random, false)), options, 3);
    QVERIFY(first && third && elsewhere);
    QVERIFY(std::abs(first->step.loss - third->step.loss) > 1e-6);
    QVERIFY(std::abs(third->step.loss - elsewhere->step.loss) < 1e-10 * std::abs(third->step.loss));
  }

  /// A difference is found: the same placement on other data.
  void a_difference_shows() {
    const auto scenario = scenario_of(test::mlp(12), 2);
    std::mt19937_64 random(1);
    const StepJob job = job_of(*scenario, test::placement_by_chance(*scenario, random, false));
    auto options = test::step_options(scenario->settings);
    const auto run = step::run_placement(step::in_double(), job, options);
    options.seed = 2;
    const auto whole = step::run_step(step::in_double(), *job.model, job.plan, options);
    QVERIFY(run && whole);
    const auto compared = step::compare(*job.model, job.plan, run->step, *whole);
    QVERIFY(compared && compared->largest() > 0.01);
  }

  /// Weights that travel are those that the step before left, though readers come behind their update.
  void several_steps_of_travelling_weights() {
    const auto scenario = scenario_of(test::recurrent_stack(3), 3);
    std::mt19937_64 random(6);
    const auto options = test::step_options(scenario->settings);
    const auto whole = step::run_placement(
        step::in_double(), job_of(*scenario, test::placement_by_chance(*scenario, random, true)), options, 3);
    QVERIFY(whole.has_value());
    for (int trial = 0; trial < 6; ++trial) {
      const auto plan = test::placement_by_chance(*scenario, random, true, trial % 2 == 1, false);
      const auto travels = step::run_placement(step::in_double(), job_of(*scenario, plan), options, 3);
      QVERIFY(travels.has_value());
      QVERIFY(std::abs(travels->step.loss - whole->step.loss) < 1e-10 * std::abs(whole->step.loss));
    }
  }

  /// Time steps go on with the weights of the training step before too.
  void several_steps_of_time_steps() {
    const auto scenario = scenario_of(test::recurrent_stack(4), 3);
    std::mt19937_64 random(4);
    const auto options = test::step_options(scenario->settings);
    const auto stepwise = step::run_placement(
        step::in_double(), job_of(*scenario, test::placement_by_chance(*scenario, random, true, true)), options, 3);
    const auto whole = step::run_placement(
        step::in_double(), job_of(*scenario, test::placement_by_chance(*scenario, random, true)), options, 3);
    QVERIFY(stepwise && whole);
    QVERIFY(std::abs(stepwise->step.loss - whole->step.loss) < 1e-10 * std::abs(whole->step.loss));
  }

  /// In float with the kernels that are timed: the same within rounding.
  void in_float_data() {
    QTest::addColumn<bool>("unrolled");
    QTest::addColumn<bool>("whole_layers");
    QTest::newRow("whole") << false << true;
    QTest::newRow("steps") << true << true;
    QTest::newRow("whole, weights travel") << false << false;
    QTest::newRow("steps, weights travel") << true << false;
  }
  void in_float() {
    QFETCH(bool, unrolled);
    QFETCH(bool, whole_layers);
    for (const auto& model : unrolled ? test::recurrent_models() : test::step_models()) {
      const auto scenario = scenario_of(model.make(), 3);
      std::mt19937_64 random(7);
      const StepJob job =
          job_of(*scenario, test::placement_by_chance(*scenario, random, false, unrolled, whole_layers));
      const auto options = test::step_options(scenario->settings);
      const auto run = step::run_placement(step::in_float(), job, options);
      QVERIFY2(run.has_value(), run ? "" : run.error().message().c_str());
      const auto whole = step::run_step(step::in_float(), *job.model, job.plan, options);
      QVERIFY(whole.has_value());
      const auto compared = step::compare(*job.model, job.plan, run->step, *whole);
      QVERIFY2(compared && compared->largest() < 2e-3, model.name);
    }
  }

  /// Gradients of a weight with two readers meet in one buffer: a rank holds what the simulator counts, and the
  /// gradient of the loss, which no task makes.
  void gradients_of_shared_weights_share_room() {
    const auto scenario = scenario_of(test::twins(), 1);
    std::mt19937_64 random(1);
    const auto plan = test::placement_by_chance(*scenario, random, false);
    const auto simulation = simulate(*plan.graph, plan.placement);
    const auto run =
        step::run_placement(step::in_float(), job_of(*scenario, plan), test::step_options(scenario->settings));
    QVERIFY(simulation && run);
    const std::int64_t loss_gradient = 4 * 2 * 4;
    QCOMPARE(run->step.ranks[0].ledger.peak, simulation->devices[0].peak_bytes + loss_gradient);
  }

  /// Over many placements the peaks of ranks are those that the simulator counts: gradients of several readers that are
  /// summed in place make one smaller here and there, moments inside a task one larger.
  void peaks_are_those_of_the_simulator_data() {
    QTest::addColumn<bool>("unrolled");
    QTest::newRow("whole operators") << false;
    QTest::newRow("time steps") << true;
  }
  void peaks_are_those_of_the_simulator() {
    QFETCH(bool, unrolled);
    double measured = 0, simulated = 0;
    for (const auto& model : unrolled ? test::recurrent_models() : test::step_models()) {
      const auto scenario = scenario_of(model.make(), 3);
      std::mt19937_64 random(7);
      for (int trial = 0; trial < 4; ++trial) {
        const auto plan = test::placement_by_chance(*scenario, random, true, unrolled, false);
        const auto simulation = simulate(*plan.graph, plan.placement);
        const auto run =
            step::run_placement(step::in_float(), job_of(*scenario, plan), test::step_options(scenario->settings));
        QVERIFY(simulation && run);
        for (std::size_t d = 0; d < 3; ++d) {
          const auto here = double(run->step.ranks[d].ledger.peak), there = double(simulation->devices[d].peak_bytes);
          QVERIFY2(here <= 1.6 * there && here >= 0.7 * there, model.name);
          measured += here, simulated += there;
        }
      }
    }
    qInfo("peaks of all ranks together %.4f of the simulated ones", measured / simulated);
    QVERIFY(std::abs(measured / simulated - 1) < 0.05);
  }

  /// What a host or GPU must have at least is that of its own devices' tasks.
  void memory_of_some_devices() {
    const auto scenario = scenario_of(test::block(), 4);
    std::mt19937_64 random(2);
    const auto plan = test::placement_by_chance(*scenario, random, false);
    const StepJob job = job_of(*scenario, plan);
    const auto simulation = simulate(*plan.graph, plan.placement);
    QVERIFY(simulation.has_value());
    const double whole = step::least_bytes(job);
    QCOMPARE(step::least_placed_bytes(job, 0, 4), whole);
    double least = whole;
    for (int d = 0; d < 4; ++d) {
      const double own = step::least_placed_bytes(job, d, 1);
      QVERIFY(own >= double(simulation->devices[std::size_t(d)].persistent_bytes) && own <= whole);
      least = std::min(least, own);
    }
    QVERIFY(least < whole / 2);
    QVERIFY(step::check_placement_job(job, 0, 4).has_value());
    const auto many = step::check_placement_job(job, 0, 9);
    QVERIFY(!many && many.error().message().find("at most 8 ranks of one host") != std::string::npos);
  }

  static bool refused(const StepJob& job, const char* why) {
    const auto made = step::PlacedProgram::make(job, {});
    if (!made && made.error().message().find(why) != std::string::npos) return true;
    qWarning("%s", made ? "taken" : made.error().message().c_str());
    return false;
  }

  void broken_placements_are_refused() {
    const auto scenario = scenario_of(test::block(), 2);
    std::mt19937_64 random(3);
    const StepJob good = job_of(*scenario, test::placement_by_chance(*scenario, random, false));
    const auto options = test::step_options(scenario->settings);
    QVERIFY(step::PlacedProgram::make(good, options).has_value());
    StepJob job = good;
    QVERIFY(!job.placement->transfers.empty());
    for (std::size_t t = 0; t < good.placement->transfers.size(); ++t) {
      if (good.placement->transfers[t].bytes == 0) continue;
      job = good;
      job.placement->transfers.erase(job.placement->transfers.begin() + std::ptrdiff_t(t));
      QVERIFY(refused(job, "no transfer brings"));
    }
    job = good;
    auto& order = job.placement->order[0].size() > 1 ? job.placement->order[0] : job.placement->order[1];
    std::reverse(order.begin(), order.end());
    QVERIFY(refused(job, "wait for each other"));
    job = good;
    for (auto& task : job.placement->tasks)
      if (task.role == TaskRole::update) task.device = 1 - task.device;
    QVERIFY(refused(job, "holds its weights"));
    job = good;
    for (auto& task : job.placement->tasks)
      if (task.role == TaskRole::update) task.role = TaskRole::accumulate;
    QVERIFY(refused(job, "micro-batches"));
    job = good;
    job.placement->tasks.push_back(job.placement->tasks.front());
    QVERIFY(refused(job, "more than once"));
  }

  /// Without the transfer of a weight, of a running sum, of a state or of gates' gradients, and weights that are held
  /// where nobody updates them.
  void broken_travels_are_refused() {
    const auto scenario = scenario_of(test::recurrent_stack(4), 3);
    std::mt19937_64 random(5);
    const StepJob good = job_of(*scenario, test::placement_by_chance(*scenario, random, false, true, false));
    QVERIFY(step::PlacedProgram::make(good, {}).has_value());
    std::set<TaskRole> roles;
    for (std::size_t t = 0; t < good.placement->transfers.size(); ++t) {
      if (good.placement->transfers[t].bytes == 0) continue;
      StepJob job = good;
      roles.insert(job.placement->tasks[job.placement->transfers[t].task].role);
      job.placement->transfers.erase(job.placement->transfers.begin() + std::ptrdiff_t(t));
      QVERIFY(refused(job, "no transfer brings"));
    }
    QCOMPARE(roles, (std::set{TaskRole::forward, TaskRole::backward, TaskRole::weight_gradient, TaskRole::weights}));
    StepJob job = good;
    for (auto& task : job.placement->tasks)
      if (task.role == TaskRole::weights) task.device = (task.device + 1) % 3;
    QVERIFY(refused(job, "not on the device that updates them"));
    job = good;
    std::size_t held = 0;
    for (auto& task : job.placement->tasks)
      if (task.role == TaskRole::weights && held++ > 0) task.role = TaskRole::forward;
    QVERIFY(!step::PlacedProgram::make(job, {}).has_value());
  }

  void broken_time_steps_are_refused() {
    const auto scenario = scenario_of(test::recurrent_stack(3), 2);
    std::mt19937_64 random(3);
    const StepJob good = job_of(*scenario, test::placement_by_chance(*scenario, random, false, true));
    QVERIFY(step::PlacedProgram::make(good, {}).has_value());
    const auto task = [&](const char* op, TaskRole role, std::int64_t step) {
      for (TaskIndex t = 0; t < good.placement->tasks.size(); ++t) {
        const auto& one = good.placement->tasks[t];
        if (good.model->operators[one.op].name == op && one.role == role && one.step == step) return t;
      }
      qFatal("no such task");
    };
    // No step's tensors may be missing where another device reads them.
    int bare = 0;
    for (std::size_t t = 0; t < good.placement->transfers.size(); ++t) {
      StepJob job = good;
      job.placement->transfers.erase(job.placement->transfers.begin() + std::ptrdiff_t(t));
      if (good.placement->transfers[t].bytes == 0)
        ++bare;
      else
        QVERIFY(refused(job, "no transfer brings"));
    }
    QVERIFY(good.placement->transfers.size() > std::size_t(bare) + 10);
    const TaskIndex second = task("middle", TaskRole::forward, 1);
    StepJob job = good;
    job.placement->tasks[second].step = 0;
    QVERIFY(refused(job, "more than once"));
    job.placement->tasks[second].step = 4;
    QVERIFY(refused(job, "no such steps"));
    job.placement->tasks[second].step = 2'000'000;
    QVERIFY(refused(job, "lacks a task"));
    job.placement->tasks[second].step = -1;
    QVERIFY(refused(job, "and of all of them"));
    job = good;
    job.placement->tasks[second].direction = 1;
    QVERIFY(refused(job, "second direction"));
    job = good;
    const TaskIndex weights = task("top", TaskRole::weight_gradient, 2);
    job.placement->tasks[weights].role = TaskRole::accumulate;
    QVERIFY(refused(job, "micro-batches"));
    job = good;
    job.placement->tasks[weights].device = 1 - job.placement->tasks[weights].device;
    QVERIFY(refused(job, "holds its weights"));
    // A step ahead of the one whose state it takes, forward and backward.
    for (const auto& [role, first, then] : {std::tuple(TaskRole::forward, 1, 2), {TaskRole::backward, 2, 1}}) {
      job = good;
      const TaskIndex a = task("both", role, first), b = task("both", role, then);
      for (auto& order : job.placement->order)
        if (const auto at = std::find(order.begin(), order.end(), a); at != order.end())
          std::iter_swap(at, std::find(order.begin(), order.end(), b));
      QVERIFY(refused(job, "wait for each other"));
    }
  }

  /// Steps that no block of a tensor is, or that have weights of their own.
  void operators_without_steps_are_refused() {
    const auto scenario = scenario_of(test::lstm(4, true, false), 1);
    std::mt19937_64 random(3);
    const StepJob good = job_of(*scenario, test::placement_by_chance(*scenario, random, false));
    for (const auto& [op, why] : {std::pair("head", "only recurrent ones"), {"embed", "only recurrent ones"}}) {
      StepJob job = good;
      for (auto& task : job.placement->tasks)
        if (job.model->operators[task.op].name == op && task.role == TaskRole::forward) task.step = 2;
      for (auto& task : job.placement->tasks)
        if (job.model->operators[task.op].name == op && task.role != TaskRole::update) task.step = 2;
      QVERIFY(refused(job, why));
    }
  }
};

QTEST_APPLESS_MAIN(StepPlacementTest)
#include "step_placement_test.moc"
