// SPDX-License-Identifier: Apache-2.0
// The same step on ranks that are processes of this host, through the memory that the probe's ranks share: bit for bit
// what the ranks that are threads compute, and a rank that dies ends the others.
#include <sys/wait.h>
#include <unistd.h>
#include <QtTest>
#include <numeric>

#include "gpu_probe/step/carried_ranks.h"
#include "gpu_probe/step/rank_step.h"
#include "gpu_probe/step_checks.h"
#include "plan/hand_plan.h"

using namespace turnpoint;

namespace {

// Everything a rank has computed, as one number that any changed bit changes.
std::uint64_t digest(const step::StepReport& report) {
  std::uint64_t hash = 1469598103934665603ull;
  const auto add = [&](double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
  };
  add(report.loss);
  for (const auto& recorded : report.recorded)
    for (const double value : recorded.data) add(value);
  for (const auto& traffic : report.traffic) add(traffic.received_bytes);
  return hash;
}

/// What one rank's exchanges go over.
struct Reached {
  Reached(probe::SharedRegion& region, int rank)
      : transport(region, rank, places(region.ranks())),
        collectives(region, rank),
        communicator(step::carried_communicator(collectives, transport)) {}
  static std::vector<int> places(int ranks) {
    std::vector<int> list(static_cast<std::size_t>(ranks));
    std::iota(list.begin(), list.end(), 0);
    return list;
  }
  probe::SharedTransport transport;
  probe::SharedCommunicator collectives;
  std::unique_ptr<step::Communicator> communicator;
};

}  // namespace

class StepProcessesTest : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::in_double()};

 private slots:
  void processes_compute_what_threads_compute() {
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2"}) {
      const auto scenario = test::scenario_on(test::mlp(12), hardware);
      QVERIFY(scenario);
      const auto options = test::step_options(scenario->settings);
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Plan plan = test::hand_plan(*scenario, seed);
        const auto threads = step::run_step(step::in_double(), *scenario->model, plan, options);
        QVERIFY2(threads.has_value(), threads ? "" : threads.error().message().c_str());
        const int ranks = plan.mesh.devices();
        auto region = probe::SharedRegion::create(ranks);
        QVERIFY2(region.has_value(), region ? "" : region.error().message().c_str());
        int answers[2];
        QCOMPARE(pipe(answers), 0);
        std::vector<pid_t> children;
        for (int r = 0; r < ranks; ++r) {
          const pid_t child = fork();
          QVERIFY(child >= 0);
          if (child > 0) {
            children.push_back(child);
            continue;
          }
          const auto program = step::Program::make(*scenario->model, plan, options);
          const Reached others(*region, r);
          step::RankStep step(**program, *others.communicator);
          const bool fine = step.run().has_value();
          const std::uint64_t answer[2] = {std::uint64_t(r), fine ? digest(step.report()) : 0};
          _exit(write(answers[1], answer, sizeof answer) == sizeof answer ? 0 : 1);
        }
        for (const pid_t child : children) {
          int status = 0;
          QCOMPARE(waitpid(child, &status, 0), child);
          QVERIFY(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        for (int r = 0; r < ranks; ++r) {
          std::uint64_t answer[2] = {};
          QCOMPARE(read(answers[0], answer, sizeof answer), ssize_t(sizeof answer));
          QCOMPARE(answer[1], digest(threads->ranks[std::size_t(answer[0])]));
        }
        close(answers[0]);
        close(answers[1]);
      }
    }
  }

  void long_messages_in_both_directions() {
    auto region = probe::SharedRegion::create(2);
    QVERIFY(region.has_value());
    const std::size_t lengths[2] = {200'001, 70'000};  // several slots, and not the same number each way
    const pid_t child = fork();
    QVERIFY(child >= 0);
    const int rank = child == 0 ? 1 : 0;
    const Reached other(*region, rank);
    step::Communicator* communicator = other.communicator.get();
    std::vector<double> out(lengths[rank]), in(lengths[1 - rank]);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = double(i) + rank * 0.25;
    bool fine = communicator->exchange(1 - rank, out, 1 - rank, in).has_value();
    for (std::size_t i = 0; i < in.size(); ++i) fine = fine && in[i] == double(i) + (1 - rank) * 0.25;
    fine = fine && communicator->take_received() == std::int64_t(in.size());
    // Then one of them gives up, and the other is told instead of waiting for ever.
    if (child == 0) {
      communicator->give_up();
      _exit(fine ? 0 : 1);
    }
    fine = fine && !communicator->exchange(1, out, 1, in).has_value();
    int status = 0;
    QCOMPARE(waitpid(child, &status, 0), child);
    QVERIFY(fine && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
};

QTEST_APPLESS_MAIN(StepProcessesTest)
#include "step_processes_test.moc"
