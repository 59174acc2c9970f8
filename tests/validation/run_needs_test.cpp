// SPDX-License-Identifier: Apache-2.0
// What a run would take on this machine, and when it is refused before it begins.
#include <QtTest>

#include "core/hardware/probe_local.h"
#include "core/plan/reprice.h"
#include "core/search/placement_search.h"
#include "core/validation/compare.h"
#include "core/validation/placement_step.h"
#include "core/validation/run_needs.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

/// A machine of cores that are `slower` times as slow as a V100 in everything.
HostRoom host_like(const Cluster& cluster, double slower, int cores) {
  auto made = std::make_shared<Cluster>(cluster);
  made->nodes = 1;
  made->devices_per_node = 1;  // whatever it was measured with
  made->device.peak_fp32 /= slower;
  made->device.memory_bandwidth /= slower;
  made->device.launch_s *= slower;
  made->device.product_launch_s *= slower;
  made->links[kIntraNode].bandwidth /= slower;
  made->links[kIntraNode].latency_s *= slower;
  return {std::int64_t(1) << 40, cores, made};
}

}  // namespace

class RunNeedsTest : public QObject {
  Q_OBJECT

  static ResultPtr searched(const ScenarioPtr& scenario, const char* method) {
    const auto result = test::run(method, scenario);
    if (!result) qFatal("%s", result.error().message().c_str());
    return *result;
  }

 private slots:
  void presets() {
    QVERIFY(is_preset("v100-16gb-1x2") && is_preset("tpu-v2-64x2+tpu-v3-64x2"));
    QVERIFY(!is_preset("local") && !is_preset("/tmp/profile.json"));
  }

  /// Priced anew for the cores of the host, of which each rank has one; with fewer cores they take turns.
  void a_plan_for_other_hardware_is_priced_again() {
    const auto scenario =
        test::scenario_on(test::mlp(), "v100-16gb-1x4", [](Settings& s) { s.collectives = Collectives::rings; });
    const auto result = searched(scenario, "data-parallel");
    const Plan plan = result->plans->sharding(0);
    StepChoice choice;
    const double there = plan.cost.time_s();
    const auto four = run_needs(*scenario, plan, choice, host_like(*scenario->cluster, 10, 4));
    QVERIFY(four.has_value());
    QVERIFY(std::abs(four->step_s - 10 * there) < 1e-9 * there);
    QVERIFY(std::abs(four->least_s - 5 * four->step_s) < 1e-12);
    // Four devices in pods of two are four devices.
    const auto podded =
        test::scenario_on(test::mlp(), "v100-16gb-2x2x1@0.5", [](Settings& s) { s.collectives = Collectives::rings; });
    const auto in_pods = run_needs(*podded, searched(podded, "data-parallel")->plans->plan(0), choice,
                                   host_like(*scenario->cluster, 10, 4));
    QVERIFY2(in_pods.has_value(), in_pods ? "" : in_pods.error().message().c_str());
    const auto two = run_needs(*scenario, plan, choice, host_like(*scenario->cluster, 10, 2));
    QVERIFY(std::abs(two->step_s - 2 * four->step_s) < 1e-9 * there);
    choice.steps = 1;
    choice.warm_up = 0;
    QCOMPARE(run_needs(*scenario, plan, choice, host_like(*scenario->cluster, 10, 4))->least_s, four->step_s);
    QVERIFY(std::abs(four->ranks_bytes - 4.0 * double(serial_peak(*scenario, plan).value())) < 1);
    const ProofNeeds proof = proof_needs(*scenario->model, plan);
    QCOMPARE(four->proof_bytes, proof.bytes);
    choice.prove = false;
    QCOMPARE(run_needs(*scenario, plan, choice, host_like(*scenario->cluster, 10, 4))->proof_bytes, 0.0);
  }

  // Weights count once for the whole step and once for every rank that holds them: 8 whole copies on 8 ranks, one in
  // eight parts where they are split. Two layers of GPT-2 with 512 tokens on two ranks took 26 s of processor time by a
  // library, and are proven within the budget that is the default, without one too.
  void a_proof_needs_what_ranks_hold() {
    const auto needs_of = [](const char* method, const char* hardware, const char* model, int batch) {
      const auto scenario = test::scenario_on(test::builtin(model, batch), hardware);
      return proof_needs(*scenario->model, searched(scenario, method)->plans->sharding(0));
    };
    const auto two = needs_of("data-parallel", "v100-16gb-1x2", "gpt2?layers=2&sequence=64", 8),
               eight = needs_of("data-parallel", "v100-16gb-1x8", "gpt2?layers=2&sequence=64", 8);
    QVERIFY2(two.seconds > 15 && two.seconds < 60, qPrintable(QString::number(two.seconds)));
    QVERIFY(two.affordable(StepChoice().budget_s, 24'000'000'000));
    const double weights =
        8.0 * 4.7 * double(test::builtin("gpt2?layers=2&sequence=64", 8)->parameters);  // of one copy
    QVERIFY2(std::abs(eight.bytes - two.bytes - 6 * weights) < 0.1 * weights,
             qPrintable(QString("%1 %2").arg(two.bytes).arg(eight.bytes)));
    QVERIFY(eight.seconds > two.seconds);
  }

  void a_slice_needs_one_rank() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x4");
    const Plan plan = searched(scenario, "data-parallel")->plans->sharding(0);
    StepChoice choice;
    choice.mode = StepMode::slice;
    const auto needs = run_needs(*scenario, plan, choice, host_like(*scenario->cluster, 1, 1));
    QVERIFY(needs.has_value());
    QVERIFY(std::abs(needs->step_s - plan.cost.compute_s()) < 1e-12);
    QVERIFY(std::abs(needs->ranks_bytes - double(serial_peak(*scenario, plan).value())) < 1);
    QCOMPARE(needs->proof_bytes, 0.0);
  }

  void a_placement() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const auto placement = std::get<PlacementPlanPtr>(searched(scenario, "heft")->plans->plan(0));
    QVERIFY(placement);
    const auto needs = run_needs(*scenario, *placement, {}, host_like(*scenario->cluster, 10, 2));
    QVERIFY2(needs.has_value(), needs ? "" : needs.error().message().c_str());
    // Everything takes ten times as long, so the schedule is the same.
    QVERIFY(std::abs(needs->step_s - 10 * placement->makespan_s) < 1e-6 * needs->step_s);
    double peaks = 0;
    for (const auto peak : placement->peak_bytes) peaks += double(peak);
    QCOMPARE(needs->ranks_bytes, peaks);
  }

  void what_is_refused() {
    RunNeeds needs;
    needs.step_s = 7, needs.least_s = 35, needs.ranks_bytes = 3e9, needs.proof_bytes = 5e9;
    HostRoom room{6'000'000'000, 2, nullptr};
    StepChoice choice;
    QVERIFY(check_room(needs, choice, room).has_value());
    const auto refused = [&](const char* what, const char* hint) {
      const auto fits = check_room(needs, choice, room);
      if (!fits && fits.error().code == ErrorCode::usage && fits.error().what.find(what) != std::string::npos &&
          fits.error().hint.find(hint) != std::string::npos)
        return true;
      qWarning("%s", fits ? "taken" : fits.error().message().c_str());
      return false;
    };
    choice.budget_s = 34;
    QVERIFY(refused("35.0 s", "35 s (--budget)"));
    choice.budget_s = 35;
    QVERIFY(check_room(needs, choice, room).has_value());
    room.memory_bytes = 4'000'000'000;
    QVERIFY(refused("4.7 GiB", "smaller"));  // the proof, which comes first
    needs.proof_bytes = 0;
    QVERIFY(check_room(needs, choice, room).has_value());
    needs.ranks_bytes = 4.1e9;
    QVERIFY(refused("3.8 GiB", "smaller"));
    room.memory_bytes = 0;  // not known
    QVERIFY(check_room(needs, choice, room).has_value());
    room.memory_bytes = 1;
    choice.backend = ProbeBackend::cuda;
    QVERIFY(check_room(needs, choice, room).has_value());
  }

  void this_machine() {
    const HostRoom room = this_host();
    QVERIFY(room.cores >= 1 && room.memory_bytes > 0 && room.hardware);
  }
};

QTEST_APPLESS_MAIN(RunNeedsTest)
#include "run_needs_test.moc"
