// SPDX-License-Identifier: Apache-2.0
// Placed steps whose ranks are on several nodes, as threads with memory for each node and TCP between: bit for bit what
// ranks of one node compute, however their transfers cross, and a proof that sees what a network may do to the numbers.
#include <QtTest>
#include <atomic>
#include <cstring>
#include <random>

#include "core/validation/placement_step.h"
#include "gpu_probe/host_ranks.h"
#include "gpu_probe/placements.h"
#include "gpu_probe/recurrent_models.h"
#include "gpu_probe/step/placement_links.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step_checks.h"
#include "gpu_probe/step_models.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

StepJob placed_job(const ScenarioPtr& scenario, std::mt19937_64& random, bool ordered, bool unrolled) {
  auto job = step_job_of(*scenario, test::placement_by_chance(*scenario, random, ordered, unrolled), {});
  if (!job) qFatal("%s", job.error().message().c_str());
  return std::move(*job);
}

/// Everything that all ranks have recorded, bit for bit.
std::vector<std::uint64_t> bits_of_run(const step::PlacementRun& run) {
  std::vector<std::uint64_t> bits;
  const auto add = [&](double value) {
    bits.emplace_back();
    std::memcpy(&bits.back(), &value, sizeof value);
  };
  add(run.step.loss);
  for (const auto& report : run.step.ranks)
    for (const auto& recorded : report.recorded)
      for (const double value : recorded.data) add(value);
  for (const double bytes : run.received_bytes) add(bytes);
  return bits;
}

using Wrap = std::function<std::unique_ptr<probe::Transport>(int rank, probe::Transport& real)>;

/// Runs body(carriers) on ranks of these nodes; how many were not satisfied.
int on_nodes(std::vector<int> nodes, const std::function<bool(const step::PlacementCarriers&)>& body,
             const Wrap& wrap = {}) {
  test::HostRanks ranks(std::move(nodes));
  return ranks.run([&](probe::Communicator& collectives, probe::Transport& transport) {
    const auto wrapped = wrap ? wrap(collectives.rank(), transport) : nullptr;
    return body({ranks.region_of(collectives.rank()), collectives, transport, wrapped ? *wrapped : transport});
  });
}

template <class Run>
std::optional<step::PlacementRun> run_on(const std::vector<int>& nodes, const Run& run) {
  std::optional<step::PlacementRun> first;
  const int wrong = on_nodes(nodes, [&](const step::PlacementCarriers& carriers) {
    auto done = run(carriers);
    if (!done) qWarning("%s", done.error().message().c_str());
    if (done && carriers.collectives.rank() == 0) first = std::move(*done);
    return done.has_value();
  });
  if (wrong != 0) first.reset();
  return first;
}

/// Does something to the nth message that is long enough to hold numbers.
class Meddling : public probe::Transport {
 public:
  enum class How { damages, fails };
  Meddling(probe::Transport& real, int at, How how) : real_(real), left_(at), how_(how) {}
  [[nodiscard]] bool exchange(std::span<const probe::Part> parts) override {
    std::vector<probe::Part> changed(parts.begin(), parts.end());
    std::vector<double> copy;
    for (auto& part : changed) {
      if (part.out.size() < 16 || left_-- != 0) continue;
      if (how_ == How::fails) return false;
      copy.resize(part.out.size() / 8);
      std::memcpy(copy.data(), part.out.data(), part.out.size());
      copy[copy.size() / 2] += 0.01;
      part.out = std::as_bytes(std::span(copy));
    }
    return real_.exchange(changed);
  }
  void abort() override { real_.abort(); }
  bool lost() const override { return real_.lost(); }

 private:
  probe::Transport& real_;
  std::atomic<int> left_;
  How how_;
};

const std::vector<std::vector<int>>& node_lists() {
  static const std::vector<std::vector<int>> kLists = {{0, 1}, {0, 1, 2}, {0, 0, 1, 1}, {0, 1, 1, 2}};
  return kLists;
}

ScenarioPtr scenario_for(const ModelPtr& model, std::size_t devices) {
  return test::scenario_on(model, "v100-16gb-1x" + std::to_string(devices));
}

}  // namespace

class StepPlacedHostsTest : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::in_double()};

 private slots:
  void hosts_compute_what_one_host_computes_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<bool>("unrolled");
    for (int i = 0; i < int(test::step_models().size()); i += 2)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i << false;
    for (int i = 0; i < int(test::recurrent_models().size()); ++i)
      QTest::newRow(test::recurrent_models()[std::size_t(i)].name) << i << true;
  }
  void hosts_compute_what_one_host_computes() {
    QFETCH(int, model);
    QFETCH(bool, unrolled);
    const auto& models = unrolled ? test::recurrent_models() : test::step_models();
    std::mt19937_64 random(static_cast<std::uint64_t>(model) + 21);
    for (const auto& nodes : node_lists()) {
      const auto scenario = scenario_for(models[std::size_t(model)].make(), nodes.size());
      const StepJob job = placed_job(scenario, random, model % 2 == 1, unrolled);
      const auto options = test::step_options(scenario->settings);
      const int steps = 1 + model % 2;
      const auto here = step::run_placement(step::in_double(), job, options, steps);
      QVERIFY2(here.has_value(), here ? "" : here.error().message().c_str());
      const auto apart = run_on(nodes, [&](const step::PlacementCarriers& carriers) {
        return step::run_placement_apart(step::in_double(), job, options, carriers, steps);
      });
      QVERIFY(apart.has_value());
      QVERIFY(bits_of_run(*apart) == bits_of_run(*here));
    }
  }

  void in_float() {
    const auto scenario = scenario_for(test::recurrent_stack(4), 3);
    std::mt19937_64 random(2);
    const StepJob job = placed_job(scenario, random, true, true);
    const auto options = test::step_options(scenario->settings);
    const auto here = step::run_placement(step::in_float(), job, options, 3);
    const auto apart = run_on({0, 1, 1}, [&](const step::PlacementCarriers& carriers) {
      return step::run_placement_apart(step::in_float(), job, options, carriers, 3);
    });
    QVERIFY(here && apart && bits_of_run(*apart) == bits_of_run(*here));
  }

  void the_proof_is_the_same() {
    const auto scenario = scenario_for(test::block(), 4);
    std::mt19937_64 random(6);
    const StepJob job = placed_job(scenario, random, false, false);
    const auto here = step::prove_placement(job);
    std::optional<StepNumerics> apart;
    const int wrong = on_nodes({0, 0, 1, 1}, [&](const step::PlacementCarriers& carriers) {
      const auto proven = step::prove_placement(job, carriers);
      if (proven && carriers.collectives.rank() == 0) apart = *proven;
      return proven && proven->has_value() == (carriers.collectives.rank() == 0);
    });
    QCOMPARE(wrong, 0);
    QVERIFY(here && apart && here->gradient_error < here->tolerance);
    QCOMPARE(apart->loss_error, here->loss_error);
    QCOMPARE(apart->activation_error, here->activation_error);
    QCOMPARE(apart->gradient_error, here->gradient_error);
    QCOMPARE(apart->update_error, here->update_error);
  }

  void damage_on_the_way_is_seen() {
    const auto scenario = scenario_for(test::block(), 2);
    std::mt19937_64 random(3);
    const StepJob job = placed_job(scenario, random, false, false);
    QVERIFY(job.placement->transfers.size() > 12);
    int seen = 0, damaged = 0;
    for (int at = 0; at < 3; ++at) {
      std::optional<StepNumerics> numerics;
      bool failed = false;
      const int wrong = on_nodes(
          {0, 1},
          [&](const step::PlacementCarriers& carriers) {
            const auto proven = step::prove_placement(job, carriers);
            if (carriers.collectives.rank() == 0) {
              failed = !proven;
              if (proven) numerics = *proven;
            }
            return proven.has_value();
          },
          [&](int rank, probe::Transport& real) -> std::unique_ptr<probe::Transport> {
            if (rank != 1) return nullptr;
            return std::make_unique<Meddling>(real, at, Meddling::How::damages);
          });
      ++damaged;
      const bool held = wrong == 0 && !failed && numerics && numerics->activation_error <= numerics->tolerance &&
                        numerics->gradient_error <= numerics->tolerance &&
                        numerics->update_error <= numerics->tolerance;
      seen += held ? 0 : 1;
    }
    QVERIFY2(seen >= 2, qPrintable(QString("%1 of %2 seen").arg(seen).arg(damaged)));
  }

  /// A rank that loses its connections in the middle of a step ends all of them, on its own host and on others.
  void a_rank_that_is_lost_data() {
    QTest::addColumn<int>("which");
    for (const int rank : {0, 1, 3}) QTest::newRow(("rank " + std::to_string(rank)).c_str()) << rank;
  }
  void a_rank_that_is_lost() {
    QFETCH(int, which);
    const auto scenario = scenario_for(test::block(), 4);
    std::mt19937_64 random(8);
    const StepJob job = placed_job(scenario, random, true, false);
    const auto options = test::step_options(scenario->settings);
    std::atomic<int> told = 0;
    const int wrong = on_nodes(
        {0, 0, 1, 1},
        [&](const step::PlacementCarriers& carriers) {
          const auto run = step::run_placement_apart(step::in_double(), job, options, carriers, 5);
          if (!run && run.error().message().find("another rank gave up") != std::string::npos) ++told;
          return run.has_value();
        },
        [&](int rank, probe::Transport& real) -> std::unique_ptr<probe::Transport> {
          if (rank != which) return nullptr;
          return std::make_unique<Meddling>(real, 3, Meddling::How::fails);
        });
    QCOMPARE(wrong, 4);
    QCOMPARE(told.load(), 4);
  }

  /// Tensors that no socket takes at once go in both directions at the same time.
  void long_transfers_cross() {
    ModelBuilder b("crossing", "test", 4096, 0);
    TensorId left = b.input("x", {4096, 1024}, {DimName::batch, DimName::channel}, ElementType::f32), right = left;
    for (int layer = 0; layer < 3; ++layer) {
      const std::string name = std::to_string(layer);
      left = b.elementwise("left" + name, "Relu", std::array{left}, {1, false, {true}});
      right = b.elementwise("right" + name, "Gelu", std::array{right}, {1, false, {true}});
    }
    const std::array both{left, right};
    const TensorId sum = b.elementwise("sum", "Add", both);
    const auto model = test::finished(b, b.linear("head", sum, b.parameter("w", {1024, 2}), b.parameter("bias", {2})));
    const auto scenario = scenario_for(model, 2);
    std::mt19937_64 random(1);
    auto plan = test::placement_by_chance(*scenario, random, false);
    // Each branch changes sides with every layer, the other way round.
    for (TaskIndex t = 0; t < plan.graph->task_count(); ++t) {
      const std::string& name = model->operators[plan.operator_of[t]].name;
      const bool is_right = name.starts_with("right"), is_left = name.starts_with("left");
      plan.placement.device[t] = is_left || is_right ? std::uint32_t((name.back() - '0' + (is_right ? 1 : 0)) % 2) : 0;
    }
    const auto job = step_job_of(*scenario, plan, {});
    QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
    int large[2] = {0, 0};
    for (const auto& transfer : job->placement->transfers)
      if (transfer.bytes >= 1 << 24) ++large[transfer.to];
    QVERIFY(large[0] >= 2 && large[1] >= 2);
    auto options = test::step_options(scenario->settings);
    options.record = false;
    const auto here = step::run_placement(step::in_float(), *job, options);
    const auto apart = run_on({0, 1}, [&](const step::PlacementCarriers& carriers) {
      return step::run_placement_apart(step::in_float(), *job, options, carriers);
    });
    QVERIFY(here && apart);
    QCOMPARE(apart->step.loss, here->step.loss);
    QVERIFY(apart->received_bytes == here->received_bytes);
  }

  /// Ranks that wait while they send, as GPUs may: in the program's order of transfers all come through, in an order of
  /// each rank's own (a send behind its task, a receive before what needs it) some placements never do.
  void one_order_for_all() {
    int stuck = 0, placements = 0;
    std::mt19937_64 random(5);
    for (const auto& model : {test::block(), test::residual(12), test::recurrent_stack(3), test::recurrent_stack(4)})
      for (const int devices : {2, 3, 4})
        for (int trial = 0; trial < 6; ++trial) {
          const auto scenario = scenario_for(model, std::size_t(devices));
          const bool unrolled = model->name == "stack" && trial % 2 == 0;
          const StepJob job = placed_job(scenario, random, trial % 3 != 0, unrolled);
          const auto program = step::PlacedProgram::make(job, {});
          QVERIFY2(program.has_value(), program ? "" : program.error().message().c_str());
          QVERIFY(comes_through(**program, true));
          stuck += comes_through(**program, false) ? 0 : 1;
          ++placements;
        }
    qInfo("%d of %d placements would wait for themselves", stuck, placements);
    QVERIFY(stuck > 0);
  }

 private:
  /// Ranks that compute one task after the other, each with a line of transfers beside it, at whose head stands the one
  /// that both sides have to come to. `one_order`: the line is the program's; else the rank's own, and it computes
  /// nothing while it waits.
  static bool comes_through(const step::PlacedProgram& program, bool one_order) {
    const auto devices = std::size_t(program.placement->devices);
    constexpr std::int64_t kTask = -1;
    struct Step {
      std::int64_t transfer = kTask;
      TaskIndex task = 0;
    };
    // Each rank's own line: tasks, what they need in front of them, what they send behind.
    std::vector<std::vector<Step>> own(devices);
    for (std::size_t d = 0; d < devices; ++d) {
      std::vector<std::size_t> taken(devices, 0);
      const auto take = [&](std::size_t from, std::uint32_t until) {
        const auto& list = program.arrivals[d * devices + from];
        const auto at = std::size_t(std::find(list.begin(), list.end(), until) - list.begin());
        for (; taken[from] <= at; ++taken[from]) own[d].push_back({list[taken[from]], 0});
      };
      for (const TaskIndex task : program.placement->order[d]) {
        for (const std::uint32_t item : program.tasks[task].reads) {
          const TaskIndex maker = program.items[item].maker;
          for (const std::uint32_t t : program.tasks[maker].sends)
            if (std::size_t(program.transfers[t].to) == d) take(std::size_t(program.transfers[t].from), t);
        }
        own[d].push_back({kTask, task});
        for (const std::uint32_t t : program.tasks[task].sends) own[d].push_back({t, 0});
      }
      for (std::size_t from = 0; from < devices; ++from)
        if (!program.arrivals[d * devices + from].empty()) take(from, program.arrivals[d * devices + from].back());
    }
    std::vector<std::size_t> at(devices, 0), line_at(devices, 0);
    std::vector<std::vector<std::uint32_t>> line(devices);
    for (const std::uint32_t t : program.transfer_order)
      for (const int side : {program.transfers[t].from, program.transfers[t].to}) line[std::size_t(side)].push_back(t);
    std::vector<char> through(program.transfers.size(), 0), done(program.tasks.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < devices; ++d)
        while (at[d] < own[d].size()) {
          const Step& step = own[d][at[d]];
          const auto& of = program.transfers[std::size_t(std::max<std::int64_t>(step.transfer, 0))];
          const bool sends = step.transfer >= 0 && std::size_t(of.from) == d;
          // Sends go into the rank's line and are not waited for there; receives are.
          if (step.transfer >= 0 && !through[std::size_t(step.transfer)] && !(one_order && sends)) break;
          if (step.transfer < 0) done[step.task] = 1;
          ++at[d], moved = true;
        }
      for (std::uint32_t t = 0; t < program.transfers.size(); ++t) {
        const auto from = std::size_t(program.transfers[t].from), to = std::size_t(program.transfers[t].to);
        if (through[t] || !done[program.transfers[t].task]) continue;
        const auto heads = [&](std::size_t d) {
          return one_order ? line_at[d] < line[d].size() && line[d][line_at[d]] == t
                           : at[d] < own[d].size() && own[d][at[d]].transfer == std::int64_t(t);
        };
        if (!heads(from) || !heads(to)) continue;
        through[t] = 1, moved = true;
        ++line_at[from], ++line_at[to];
      }
    }
    for (std::size_t d = 0; d < devices; ++d)
      if (at[d] < own[d].size()) return false;
    return true;
  }
};

QTEST_APPLESS_MAIN(StepPlacedHostsTest)
#include "step_placed_hosts_test.moc"
