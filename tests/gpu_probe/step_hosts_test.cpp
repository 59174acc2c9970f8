// SPDX-License-Identifier: Apache-2.0
// Steps whose ranks are on several nodes: bit for bit what ranks that are threads compute, in double and in float, and
// a proof that sees what a network may do to the numbers.
#include <QtTest>
#include <cstring>

#include "gpu_probe/host_ranks.h"
#include "gpu_probe/step/carried_ranks.h"
#include "gpu_probe/step/prove_apart.h"
#include "gpu_probe/step/rank_step.h"
#include "gpu_probe/step/timed.h"
#include "gpu_probe/step_checks.h"
#include "plan/hand_plan.h"

using namespace turnpoint;

namespace {

/// Everything that a rank has recorded, bit for bit.
std::vector<std::uint64_t> bits_of(const step::StepReport& report) {
  std::vector<std::uint64_t> bits;
  const auto add = [&](double value) {
    bits.emplace_back();
    std::memcpy(&bits.back(), &value, sizeof value);
  };
  add(report.loss);
  for (const auto& recorded : report.recorded)
    for (const double value : recorded.data) add(value);
  for (const auto& traffic : report.traffic) add(traffic.received_bytes);
  return bits;
}

/// Runs the step on nodes of these ranks and compares each rank's report; the first that differs, or -1.
int first_different(const Model& model, const Plan& plan, const step::StepOptions& options, std::vector<int> nodes,
                    const std::vector<step::StepReport>& wanted) {
  std::atomic<int> different = -1;
  test::HostRanks ranks(std::move(nodes));
  ranks.run([&](probe::Communicator& collectives, probe::Transport& transport) {
    const step::ComputeIn here(step::in_double());
    const auto program = step::Program::make(model, plan, options);
    const auto communicator = step::carried_communicator(collectives, transport);
    step::RankStep step(**program, *communicator);
    const bool same =
        step.run() && bits_of(step.report()) == bits_of(wanted[static_cast<std::size_t>(collectives.rank())]);
    if (!same) different = collectives.rank();
    return same;
  });
  return different;
}

/// Damages one number of what this rank sends.
class Damaging : public probe::Transport {
 public:
  Damaging(probe::Transport& real, int at) : real_(real), left_(at) {}
  [[nodiscard]] bool exchange(std::span<const probe::Part> parts) override {
    std::vector<probe::Part> changed(parts.begin(), parts.end());
    std::vector<double> copy;
    for (auto& part : changed) {
      if (part.out.size() < 64 || part.out.size() % 8 != 0 || left_-- != 0) continue;
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
  int left_;
};

StepJob job_of(const ScenarioPtr& scenario, const Plan& plan) {
  StepJob job;
  job.model = scenario->model;
  job.plan = plan;
  const step::StepOptions options = test::step_options(scenario->settings);
  job.weight_bytes = options.weight_bytes;
  job.gradient_bytes = options.gradient_bytes;
  job.optimizer_bytes = options.optimizer_bytes;
  job.optimizer = to_string(scenario->settings.optimizer);
  return job;
}

std::vector<int> nodes_of(int ranks, int per_node) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / per_node);
  return nodes;
}

}  // namespace

class StepHostsTest : public QObject {
  Q_OBJECT

 private slots:
  void hosts_compute_what_threads_compute() {
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2"}) {
      const auto scenario = test::scenario_on(test::mlp(12), hardware);
      const auto options = test::step_options(scenario->settings);
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const Plan plan = test::hand_plan(*scenario, seed);
        const auto threads = step::run_step(step::in_double(), *scenario->model, plan, options);
        QVERIFY2(threads.has_value(), threads ? "" : threads.error().message().c_str());
        for (const int per_node : {1, 2})
          QCOMPARE(
              first_different(*scenario->model, plan, options, nodes_of(plan.mesh.devices(), per_node), threads->ranks),
              -1);
      }
    }
  }

  // The proof over the connections gives the very numbers of the proof among threads.
  void the_proof_is_the_same() {
    const auto scenario = test::scenario_on(test::mlp(12), "v100-16gb-2x2");
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const StepJob job = job_of(scenario, test::hand_plan(*scenario, seed));
      const auto threads = step::prove(job);
      QVERIFY2(threads.has_value(), threads ? "" : threads.error().message().c_str());
      std::optional<StepNumerics> apart;
      test::HostRanks ranks({0, 0, 1, 1});
      const int wrong = ranks.run([&](probe::Communicator& collectives, probe::Transport& transport) {
        const auto communicator = step::carried_communicator(collectives, transport);
        const auto proven = step::prove_apart(job, *communicator, transport);
        if (proven && collectives.rank() == 0) apart = *proven;
        return proven && proven->has_value() == (collectives.rank() == 0);
      });
      QCOMPARE(wrong, 0);
      QVERIFY(apart->gradient_error < apart->tolerance);
      QCOMPARE(apart->loss_error, threads->loss_error);
      QCOMPARE(apart->activation_error, threads->activation_error);
      QCOMPARE(apart->gradient_error, threads->gradient_error);
      QCOMPARE(apart->update_error, threads->update_error);
    }
  }

  void damage_on_the_way_is_seen() {
    const auto scenario = test::scenario_on(test::mlp(12), "v100-16gb-1x2");
    const StepJob job = job_of(scenario, test::hand_plan(*scenario, 1));
    int seen = 0, runs = 0;
    for (int at = 0; at < 6; ++at) {
      std::optional<Expected<std::optional<StepNumerics>>> proven;
      test::HostRanks ranks({0, 1});
      ranks.run([&](probe::Communicator& collectives, probe::Transport& transport) {
        Damaging damaging(transport, at);
        probe::Transport& used = collectives.rank() == 1 ? damaging : transport;
        const auto communicator = step::carried_communicator(collectives, used);
        auto result = step::prove_apart(job, *communicator, used);
        const bool fine = result.has_value();
        if (collectives.rank() == 0) proven.emplace(std::move(result));
        return fine;
      });
      ++runs;
      const bool held = proven && proven->has_value() && (**proven)->gradient_error <= (**proven)->tolerance &&
                        (**proven)->activation_error <= (**proven)->tolerance &&
                        (**proven)->update_error <= (**proven)->tolerance;
      seen += held ? 0 : 1;
    }
    QVERIFY2(seen >= runs / 2, qPrintable(QString("%1 of %2 seen").arg(seen).arg(runs)));
  }
};

QTEST_APPLESS_MAIN(StepHostsTest)
#include "step_hosts_test.moc"
