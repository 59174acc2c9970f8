// SPDX-License-Identifier: Apache-2.0
// Ratio plans on the simulated clock: equal halves run as the sharding plan does, unlike ones as a finger on paper
// says, any plan by the rules, and devices that do the same are one role.
#include <QtTest>

#include "core/plan/ratio_charges.h"
#include "core/schedule/fitting.h"
#include "core/schedule/plan_schedule.h"
#include "core/schedule/ratio_lowering.h"
#include "core/schedule/ratio_roles.h"
#include "core/schedule/simulated_points.h"
#include "core/search/method/method.h"
#include "plan/ratio_plans.h"
#include "simulation/slow_lanes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

struct Laid {
  LoweredPlan lowered;
  LaneTimes times;
  double of(PlanTaskKind kind, std::uint32_t role) const {
    for (std::size_t i = 0; i < lowered.tasks.size(); ++i)
      if (lowered.tasks[i].kind == kind && lowered.tasks[i].role == role && lowered.items.duration_s[i] > 0)
        return times.start_s[i];
    return -1;
  }
  double sum(PlanTaskKind kind) const {
    double seconds = 0;
    for (std::size_t i = 0; i < lowered.tasks.size(); ++i)
      if (lowered.tasks[i].kind == kind) seconds += lowered.items.duration_s[i];
    return seconds;
  }
  int count(PlanTaskKind kind) const {
    return int(std::count_if(lowered.tasks.begin(), lowered.tasks.end(),
                             [&](const PlanTask& task) { return task.kind == kind; }));
  }
};

Laid laid(const Scenario& scenario, const RatioPlan& plan) {
  auto lowered = lower_ratio_plan(scenario, plan);
  if (!lowered) qFatal("%s", lowered.error().message().c_str());
  LaneTimes times = run_lanes(lowered->items);
  return {std::move(*lowered), std::move(times)};
}

class OnePlan : public PlanSource {
 public:
  explicit OnePlan(const RatioPlan& plan) : plan_(std::make_shared<const RatioPlan>(plan)) {}
  AnyPlan plan(std::size_t) const override { return plan_; }
  PlanKind kind(std::size_t) const override { return PlanKind::ratio; }

 private:
  RatioPlanPtr plan_;
};

/// The same plan with a cut of its own at every place.
RatioPlan with_own_cuts(const RatioPlan& plan) {
  RatioPlan own = plan;
  own.cuts.clear();
  const std::function<std::uint32_t(std::uint32_t)> copy = [&](std::uint32_t from) {
    if (from == RatioPlan::kNoCut) return from;
    const auto at = std::uint32_t(own.cuts.size());
    own.cuts.push_back(plan.cuts[from]);
    for (const int half : {0, 1}) {
      const std::uint32_t next = copy(plan.cuts[from].next[std::size_t(half)]);
      own.cuts[at].next[std::size_t(half)] = next;
    }
    return at;
  };
  copy(0);
  return own;
}

/// Any plan of four equal devices in two levels of equal halves.
RatioPlan in_quarters(const Scenario& scenario, std::mt19937_64& random) {
  RatioPlan plan;
  plan.order = {0, 1, 2, 3};
  plan.parts = {{1, {}}, {2, {0, 0}}, {4, {1, 1}}};
  LoopLengths lengths = loop_lengths(*scenario.model);
  for (const std::uint32_t part : {2u, 1u}) {
    RatioPlan::Cut cut{part, 0.5, {}, {part - 1, part - 1}};
    if (part == 1) cut.next = {RatioPlan::kNoCut, RatioPlan::kNoCut};
    for (std::size_t o = 0; o < lengths.size(); ++o) {
      const Operator& op = scenario.model->operators[OperatorId(o)];
      const auto loop = std::size_t(random() % (op.dims.size() + 1));
      const bool may = loop < op.dims.size() && lengths[o][loop] % 2 == 0 && can_split(op, std::int8_t(loop), false);
      cut.share.push_back(may ? RatioPlan::Share{std::int8_t(loop), lengths[o][loop] / 2} : RatioPlan::Share{});
      if (may) lengths[o][loop] /= 2;
    }
    plan.cuts.push_back(std::move(cut));
  }
  return plan;
}

}  // namespace

class RatioScheduleTest : public QObject {
  Q_OBJECT

 private slots:
  void halves_of_equal_devices_run_as_a_sharding_plan() {
    int plans = 0, same_time = 0, same_peak = 0;
    for (const auto& [name, model] : networks_to_cut(5, 12))
      for (const char* method : {"data-parallel", "accpar", "hypar"}) {
        const auto scenario = rings_on(model, "v100-16gb-1x2");
        const auto result = answer_of(method, scenario);
        const Plan plan = result->plans->sharding(0);
        const auto expected = simulate_plan(PlanLowering(*scenario), plan);
        const auto made = simulate_plan(*scenario, in_halves(*scenario->model, plan));
        QVERIFY(expected && made);
        const std::string what = name + " by " + method;
        ++plans;
        same_time += close(made->time_s, expected->time_s);
        same_peak += made->memory_bytes == expected->memory_bytes;
        QVERIFY2(std::abs(made->time_s / expected->time_s - 1) < 0.05, what.c_str());
        // A sharding plan chooses which copies it keeps.
        const double peak = double(made->memory_bytes) / double(expected->memory_bytes);
        QVERIFY2(peak > 0.75 && peak < 1.25, qPrintable(QString("%1: %2").arg(what.c_str()).arg(peak)));
        if (std::string(method) == "data-parallel") {
          QVERIFY2(close(made->time_s, expected->time_s), what.c_str());
          QCOMPARE(made->memory_bytes, expected->memory_bytes);
        }
      }
    QVERIFY2(same_time >= plans - 3 && same_peak * 10 >= plans * 9,
             qPrintable(QString("%1 and %2 of %3").arg(same_time).arg(same_peak).arg(plans)));
  }

  // 3 of 12 rows on a V100, 9 on an A100: each works at its own pace, the sum of the gradient waits for both.
  void unlike_devices_by_hand() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x1+a100-80gb-1x1");
    const RatioPlan plan = *evaluate_ratio_plan(*scenario, cut_by("batch", 3, *scenario));
    const Laid run = laid(*scenario, plan);
    const RatioCharges charges(*scenario, plan);
    const OperatorId fc(1);
    CostBreakdown cost[2] = {charges.device_cost(fc, 0, {3, 10, 8}), charges.device_cost(fc, 1, {9, 10, 8})};
    QCOMPARE(scenario->model->operators[fc].dims.size(), std::size_t(3));
    QVERIFY(cost[0][ComputePart::forward] != cost[1][ComputePart::forward]);
    QCOMPARE(run.lowered.roles.size(), std::size_t(2));
    double end = 0;
    for (const std::uint32_t r : {0u, 1u}) {
      QCOMPARE(run.of(PlanTaskKind::forward, r), 0.0);
      QCOMPARE(run.of(PlanTaskKind::backward, r), cost[r][ComputePart::forward]);
      end = std::max(end, cost[r][ComputePart::forward] + cost[r][ComputePart::backward]);
    }
    CostBreakdown all = plan.operators.back().cost;
    const double summed = end + all[NetworkPart::all_reduce];
    for (const std::uint32_t r : {0u, 1u}) QVERIFY(close(run.of(PlanTaskKind::update, r), summed));
    const double last = std::max(cost[0][ComputePart::update], cost[1][ComputePart::update]);
    QVERIFY(close(run.times.makespan_s, summed + last));
    // Each holds the weights with Adam's moments, its rows, its result's gradient (where the result is freed), and the
    // gradient of the weights.
    const auto memory = memory_over_time(run.lowered.buffers, run.times, run.lowered.persistent(), false);
    QCOMPARE(memory[0].peak_bytes, 80 * 12 + (3 * 10 + 3 * 8 + 80) * 4);
    QCOMPARE(memory[1].peak_bytes, 80 * 12 + (9 * 10 + 9 * 8 + 80) * 4);
    const auto schedule = plan_schedule(*scenario, plan);
    QVERIFY(schedule.has_value());
    QCOMPARE((*schedule)->devices[0].name, std::string("device 0, V100-16GB"));
    QCOMPARE((*schedule)->devices[1].memory_limit, scenario->memory_limit_of(1));
    QVERIFY((*schedule)->devices[0].memory_limit < (*schedule)->devices[1].memory_limit);
  }

  void any_plan_follows_the_rules() {
    std::mt19937_64 random(17);
    for (const char* hardware : {"v100-16gb-1x3", "v100-16gb-1x2+a100-80gb-1x1", "v100-16gb-2x2", "v100-16gb-1x5"})
      for (const auto& [name, model] : networks_to_cut(23, 10)) {
        if (model->operators.size() > 40) continue;
        const auto scenario =
            scenario_on(model, hardware, [&](Settings& s) { s.bucket_bytes = 64 << (random() % 16); });
        RatioPlan any = RandomRatioPlan(random, *scenario).plan();
        if (random() % 2) any = with_random_reruns(random, *scenario->model, any);
        if (random() % 2) any = with_random_updates(random, *scenario, any);
        const auto plan = evaluate_ratio_plan(*scenario, any);
        const std::string what = name + " on " + hardware;
        QVERIFY2(plan.has_value(), (what + (plan ? "" : plan.error().message())).c_str());
        const Laid run = laid(*scenario, *plan);
        const auto memory = memory_over_time(run.lowered.buffers, run.times, run.lowered.persistent(), false);
        const QString fault = compare_with_slow(run.lowered, run.times, memory[0]);
        QVERIFY2(fault.isEmpty(), qPrintable(QString::fromStdString(what) + ": " + fault));
        // Every device computes what it is charged for, and what the cuts exchange is on the lanes once.
        double slowest = 0;
        for (std::uint32_t r = 0; r < run.lowered.roles.size(); ++r) {
          double busy = 0;
          for (const std::uint32_t i : run.times.run[3 * r]) busy += run.lowered.items.duration_s[i];
          QVERIFY2(close(busy, plan->device_compute_s[run.lowered.roles[r].members.front()]), what.c_str());
          slowest = std::max(slowest, busy);
        }
        QVERIFY2(run.times.makespan_s >= slowest * (1 - 1e-12), what.c_str());
        const RatioCharges charges(*scenario, *plan);
        const auto roles = roles_of(*plan, *scenario->model, charges);
        double exchanged = 0;
        for (const auto& site : roles->sites)
          for (const RatioExchange& exchange : site.exchanges) exchanged += exchange.seconds;
        double on_lanes = 0;
        for (const PlanTaskKind kind : {PlanTaskKind::reshard, PlanTaskKind::reshard_back, PlanTaskKind::weights,
                                        PlanTaskKind::gradients, PlanTaskKind::new_weights})
          on_lanes += run.sum(kind);
        QVERIFY2(close(on_lanes, exchanged), what.c_str());
        QVERIFY2(waits_are_kept(*scenario, *roles, run).isEmpty(), qPrintable(waits_are_kept(*scenario, *roles, run)));
        // An operator is charged for the half that takes longest with all its phases; in one phase the other may.
        QVERIFY2(run.times.makespan_s <= plan->cost.time_s() * 1.02, what.c_str());
      }
  }

  void devices_that_do_the_same_are_one_role() {
    std::mt19937_64 random(29);
    for (const auto& [name, model] : networks_to_cut(31, 10))
      for (const char* hardware : {"v100-16gb-1x4", "v100-16gb-2x2"}) {
        const auto scenario = scenario_on(model, hardware);
        RatioPlan plan = in_quarters(*scenario, random);
        const bool mixed_nodes = random() % 2 == 0 && std::string(hardware) == "v100-16gb-2x2";
        if (mixed_nodes) plan.order = {0, 2, 3, 1};
        const Laid together = laid(*scenario, plan), apart = laid(*scenario, with_own_cuts(plan));
        QCOMPARE(together.lowered.roles.size(), std::size_t(1));
        QCOMPARE(together.lowered.roles[0].devices, 4u);
        QCOMPARE(together.lowered.roles[0].members, (std::vector<std::uint32_t>{0, 1, 2, 3}));
        QCOMPARE(apart.lowered.roles.size(), std::size_t(2));  // the two of a pair still do the same
        QVERIFY2(close(together.times.makespan_s, apart.times.makespan_s), name.c_str());
        const auto memory =
            memory_over_time(together.lowered.buffers, together.times, together.lowered.persistent(), false);
        for (const auto& one : memory_over_time(apart.lowered.buffers, apart.times, apart.lowered.persistent(), false))
          QCOMPARE(one.peak_bytes, memory[0].peak_bytes);
      }
    // One pair lies in a node, the other in two: what they exchange takes other links.
    const auto scenario = scenario_on(mlp(), "v100-16gb-3x2");
    RatioPlan plan = in_quarters(*scenario_on(mlp(), "v100-16gb-1x4"), random);
    plan.order = {0, 1, 2, 4, 3, 5};
    plan.parts = {{1, {}}, {2, {0, 0}}, {4, {1, 1}}, {6, {2, 1}}};
    RatioPlan::Cut whole{3, 0.5, std::vector<RatioPlan::Share>(scenario->model->operators.size()), {1, 2}};
    for (RatioPlan::Cut& cut : plan.cuts)
      for (std::uint32_t& next : cut.next)
        if (next != RatioPlan::kNoCut) next += 1;
    plan.cuts.insert(plan.cuts.begin(), whole);
    const auto roles = laid(*scenario, plan).lowered.roles;
    QCOMPARE(roles[0].members, (std::vector<std::uint32_t>{0, 1}));
    QCOMPARE(roles[1].members, (std::vector<std::uint32_t>{2, 4}));
  }

  // Of two equal devices one runs fc1 and relu again: it holds less after forward, works longer, and is a role of its
  // own. By hand: x [8 rows], fc1 10 -> 8, relu, fc2 8 -> 6, four rows each.
  void what_runs_again_by_hand() {
    ModelBuilder b("again", "test", 8, 0);
    TensorId x = b.input("x", {8, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("fc1", x, b.parameter("w1", {10, 8}));
    x = b.elementwise("relu", "Relu", std::array{x}, {1, true, {}});
    x = b.linear("fc2", x, b.parameter("w2", {8, 6}));
    const auto scenario = rings_on(finished(b, x), "v100-16gb-1x2");
    RatioPlan halves = cut_by("batch", 4, *scenario);
    for (RatioPlan::Share& share : halves.cuts[0].share) share = {0, 4};  // each operator's first loop is its rows
    const RatioPlan plain = *evaluate_ratio_plan(*scenario, halves);
    QCOMPARE(laid(*scenario, plain).lowered.roles.size(), std::size_t(1));
    halves.reruns = {{{1}, {OperatorId(1), OperatorId(2)}}};
    const RatioPlan plan = *evaluate_ratio_plan(*scenario, halves);
    const Laid run = laid(*scenario, plan);
    QCOMPARE(run.lowered.roles.size(), std::size_t(2));
    QCOMPARE(run.count(PlanTaskKind::again), 2);
    QVERIFY(close(run.sum(PlanTaskKind::again), plan.device_compute_s[1] - plan.device_compute_s[0]));
    QVERIFY(close(plan.device_compute_s[0], plain.device_compute_s[0]));
    // The second run of fc1 begins where forward has ended and fc2's backward has not begun.
    double first_again = -1, first_backward[2] = {-1, -1};
    for (std::size_t i = 0; i < run.lowered.tasks.size(); ++i) {
      const PlanTask& task = run.lowered.tasks[i];
      if (task.kind == PlanTaskKind::again && first_again < 0) {
        first_again = run.times.start_s[i];
        QCOMPARE(task.op, OperatorId(1));
        QCOMPARE(task.role, 1u);
      }
      if (task.kind == PlanTaskKind::backward && first_backward[task.role] < 0 && run.lowered.items.duration_s[i] > 0)
        first_backward[task.role] = run.times.start_s[i];
    }
    QCOMPARE(first_again, first_backward[0]);
    QVERIFY(close(first_backward[1], first_again + run.sum(PlanTaskKind::again)));
    // Kept plain: x for fc1 and relu's result for itself and fc2; with second runs: x.
    QCOMPARE(plan.device_memory[0], plain.device_memory[0]);
    QCOMPARE(plan.device_memory[1], plain.device_memory[0] - 4 * 8 * 4);
  }

  // Gradients travel in fewer messages, for the same time on the links.
  void gradients_fill_messages() {
    const auto model = builtin("lenet", 64);
    const auto count = [&](std::int64_t bucket, double& seconds) {
      const auto scenario = scenario_on(model, "v100-16gb-1x3", [&](Settings& s) { s.bucket_bytes = bucket; });
      const auto result = answer_of("data-parallel", scenario_on(model, "v100-16gb-1x2"));
      RatioPlan plan = in_halves(*scenario->model, result->plans->sharding(0));
      plan.order = {0, 1, 2};
      plan.parts.push_back({3, {1, 0}});
      RatioPlan::Cut outer = plan.cuts[0];
      outer.part = 2, outer.next = {1, RatioPlan::kNoCut};
      for (RatioPlan::Share& share : plan.cuts[0].share) share.first /= 2;
      plan.cuts.insert(plan.cuts.begin(), outer);
      const Laid run = laid(*scenario, plan);
      seconds = run.sum(PlanTaskKind::gradients);
      return run.count(PlanTaskKind::gradients);
    };
    double alone = 0, all = 0;
    QCOMPARE(count(0, alone), 2 * 5);
    QCOMPARE(count(std::int64_t(1) << 30, all), 2);
    QVERIFY(all < alone);
    double some = 0;
    const int messages = count(150'000, some);
    QVERIFY2(messages > 2 && messages < 10, qPrintable(QString::number(messages)));
  }

  void too_many_unlike_parts_are_refused() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x1+a100-80gb-1x1");
    const auto refused = lower_ratio_plan(*scenario, cut_by("batch", 3, *scenario), 3);
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().message().find("2 unlike parts of 2 operators") != std::string::npos,
             refused.error().message().c_str());
    QVERIFY(lower_ratio_plan(*scenario, cut_by("batch", 3, *scenario), 4).has_value());
  }

  // Each device has its own memory: 20 GiB are too many for the V100 alone.
  void what_fits_is_judged_device_by_device() {
    const auto model = builtin("vgg11", 1024);
    const auto scenario = scenario_on(model, "v100-16gb-1x1+a100-80gb-1x1");
    const auto share = [&](double part) {
      RatioPlan plan;
      plan.order = {0, 1};
      plan.parts = {{1, {}}, {2, {0, 0}}};
      RatioPlan::Cut cut{1, part, {}, {RatioPlan::kNoCut, RatioPlan::kNoCut}};
      for (const Operator& op : scenario->model->operators) {
        const std::int8_t loop = loop_of(op, "batch");
        cut.share.push_back(loop < 0 ? RatioPlan::Share{} : RatioPlan::Share{loop, std::int64_t(1024 * part)});
      }
      plan.cuts.push_back(std::move(cut));
      return *evaluate_ratio_plan(*scenario, std::move(plan));
    };
    // Judged as the window judges, against the limit of the weakest device elsewhere.
    const auto judged = [&](const RatioPlan& plan) {
      auto result = std::make_shared<Result>();
      result->scenario = scenario;
      result->plans = std::make_shared<OnePlan>(plan);
      ResultPoint point;
      point.memory_bytes = plan.most_memory();
      point.time_s = plan.cost.time_s();
      point.fits = fits(*scenario, plan);
      result->points = {point};
      const bool fits_there = (*judge_fits(result, RunContext()))->points[0].fits;
      // Whether its peak is known already, as searches leave it, changes nothing.
      const auto simulated = with_simulated_points(result, RunContext());
      if (!simulated || (*judge_fits(*simulated, RunContext()))->points[0].fits != fits_there)
        qFatal("judged otherwise");
      return fits_there;
    };
    const RatioPlan on_a100 = share(0.1), on_v100 = share(0.9);
    QVERIFY(judged(on_a100));
    QVERIFY(!judged(on_v100));
    const auto small = simulate_plan(*scenario, on_a100), large = simulate_plan(*scenario, on_v100);
    QVERIFY(small && large);
    QVERIFY(small->memory_bytes > scenario->memory_limit() && large->memory_bytes > scenario->memory_limit());
    QVERIFY(small->fits(scenario->memory_limit()));
    QVERIFY(!large->fits(scenario->memory_limit()));
  }

 private:
  /// Readers wait for producers and for all exchanges that bring what they read; gradients likewise, the other way.
  static QString waits_are_kept(const Scenario& scenario, const RatioRoles& roles, const Laid& run) {
    const Model& model = *scenario.model;
    const TensorUses uses = analyse_tensor_uses(model);
    const auto item_of = [&](PlanTaskKind kind, OperatorId op, std::uint32_t role) {
      for (std::uint32_t i = 0; i < run.lowered.tasks.size(); ++i) {
        const PlanTask& task = run.lowered.tasks[i];
        if (task.kind == kind && task.op == op && task.role == role) return i;
      }
      return kNone;
    };
    const auto takes_part = [&](std::uint32_t item, std::uint32_t role) {
      bool part = false;
      run.lowered.items.each_lane(item, [&](std::uint32_t lane) { part = part || lane / 3 == role; });
      return part;
    };
    for (const TensorFlow& flow : uses.flows)
      for (std::uint32_t r = 0; r < roles.roles.size(); ++r) {
        const std::uint32_t made = item_of(PlanTaskKind::forward, flow.producer, r);
        const std::uint32_t back = item_of(PlanTaskKind::backward, flow.producer, r);
        for (const Model::Use& use : flow.consumers) {
          const std::uint32_t reader = item_of(PlanTaskKind::forward, use.op, r);
          if (run.times.start_s[reader] < run.times.end_s[made]) return "a reader begins before its producer has ended";
          for (std::uint32_t i = 0; i < run.lowered.tasks.size(); ++i) {
            const PlanTask& task = run.lowered.tasks[i];
            if (task.tensor != flow.tensor || !takes_part(i, r)) continue;
            if (task.kind == PlanTaskKind::reshard && run.times.start_s[i] < run.times.end_s[made])
              return "an exchange begins before there is something to exchange";
            if (task.kind == PlanTaskKind::reshard && task.op == use.op &&
                run.times.start_s[reader] < run.times.end_s[i])
              return "a reader begins before its input has come";
            if (task.kind == PlanTaskKind::reshard_back && back != kNone &&
                run.times.start_s[back] < run.times.end_s[i])
              return "a producer's backward begins before its gradient has come";
          }
        }
      }
    return {};
  }
};

QTEST_APPLESS_MAIN(RatioScheduleTest)
#include "ratio_schedule_test.moc"
