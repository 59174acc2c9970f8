// SPDX-License-Identifier: Apache-2.0
// Ratio plans: halves of two equal devices cost what the same sharding plan does, unlike ones what a formula says by
// hand, broken ones are refused.
#include <QtTest>

#include "core/plan/ratio_charges.h"
#include "core/plan/ratio_evaluator.h"
#include "core/search/method/method.h"
#include "plan/ratio_plans.h"

using namespace turnpoint;
using namespace turnpoint::test;

class RatioEvaluatorTest : public QObject {
  Q_OBJECT

 private slots:
  void halves_of_equal_devices_are_a_sharding_plan() {
    const auto models = networks_to_cut(3, 20);
    int plans = 0, alike = 0;
    for (const auto& [name, model] : models)
      for (const char* hardware : {"v100-16gb-1x2", "a100-80gb-2x1"})
        for (const char* method : {"data-parallel", "accpar", "hypar"}) {
          const auto scenario = rings_on(model, hardware);
          const auto result = run(method, scenario);
          QVERIFY2(result.has_value(), name.c_str());
          Plan plan = (*result)->plans->sharding(0);
          auto made = evaluate_ratio_plan(*scenario, in_halves(*scenario->model, plan));
          const std::string what = name + " on " + hardware + " by " + method;
          QVERIFY2(made.has_value(), (what + (made ? "" : made.error().message())).c_str());
          for (const ComputePart part : {ComputePart::forward, ComputePart::backward, ComputePart::update})
            QVERIFY2(close(made->cost[part], plan.cost[part]), what.c_str());
          for (const MemoryPart part : {MemoryPart::parameters, MemoryPart::gradients, MemoryPart::optimizer})
            QCOMPARE(made->cost[part], plan.cost[part]);
          // A sharding plan may bring a tensor of several readers to a layout between theirs, and chooses which copies
          // are kept; halves exchange what each reader wants.
          ++plans;
          alike += close(made->cost.network_s(), plan.cost.network_s());
          QVERIFY2(std::abs(made->cost.network_s() / std::max(plan.cost.network_s(), 1e-12) - 1) < 0.02 ||
                       made->cost.network_s() == plan.cost.network_s(),
                   what.c_str());
          const double memory = double(made->cost.memory_bytes()) / double(plan.cost.memory_bytes());
          QVERIFY2(memory > 0.8 && memory < 1.08, what.c_str());
          if (std::string(method) == "data-parallel") QCOMPARE(made->cost.memory_bytes(), plan.cost.memory_bytes());
        }
    QVERIFY2(plans > 150 && alike >= plans - 2, qPrintable(QString("%1 of %2").arg(alike).arg(plans)));
  }

  // A table by its words, used as its transpose by the same words: both halves have what they read.
  void a_transposed_weight_by_hand() {
    ModelBuilder b("tied", "test", 6, 0);
    const TensorId table = b.parameter("table", {8, 10}, {DimName::channel, DimName::vocabulary});
    TensorId x = b.input("x", {6, 8}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("in", x, table);
    x = b.linear("out", x, b.tied_parameter("table_again", table, {10, 8}));
    const auto scenario = rings_on(finished(b, x), "v100-16gb-1x1+a100-80gb-1x1");
    const auto shared = [&](std::string_view of_user, std::int64_t first) {
      RatioPlan plan = cut_by("batch", 3, *scenario);
      const Model& model = *scenario->model;
      plan.cuts[0].share[1] = {loop_of(model.operators[OperatorId(1)], "out-channel"), 4};
      plan.cuts[0].share[2] = {loop_of(model.operators[OperatorId(2)], of_user), first};
      const auto priced = evaluate_ratio_plan(*scenario, plan);
      if (!priced) qFatal("%s", priced.error().message().c_str());
      double bytes = 0;
      for (const auto& exchange : priced->weights) bytes += exchange.all_bytes;
      return bytes;
    };
    QCOMPARE(shared("in-channel", 4), 0.0);
    // In other shares, or by the other dimension, a half lacks some: of the weight, and of its gradient on the way
    // back.
    QCOMPARE(shared("in-channel", 7), 2 * 3 * 8 * 4.0);
    QCOMPARE(shared("out-channel", 2), 2 * 4.0 * (2 * 6 + 6 * 4));
  }

  // What both halves receive of the gradient of 80 weights, and of a result's two parts where a reader wants it whole.
  void what_all_halves_receive() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x1+a100-80gb-1x1");
    const RatioPlan plan = *evaluate_ratio_plan(*scenario, cut_by("batch", 3, *scenario));
    QVERIFY(plan.exchanges.empty());
    QCOMPARE(plan.weights.size(), std::size_t(1));
    QCOMPARE(plan.weights[0].all_bytes, 2 * 80 * 4.0);
    QCOMPARE(plan.weights[0].bytes, 80 * 4.0);
    // Over three devices, the outer cut and one of two: each halves' receipts count, though at once.
    const auto three = rings_on(one_product(), "v100-16gb-1x1+a100-80gb-1x2");
    RatioPlan row = cut_by("batch", 3, *three);
    row.order = {0, 1, 2};
    row.parts = {{1, {}}, {1, {}}, {1, {}}, {2, {1, 2}}, {3, {0, 3}}};
    row.cuts[0].part = 4, row.cuts[0].next[1] = 1;
    row.cuts.push_back(row.cuts[0]);
    row.cuts[1].part = 3, row.cuts[1].next = {RatioPlan::kNoCut, RatioPlan::kNoCut};
    const auto priced = evaluate_ratio_plan(*three, row);
    QVERIFY2(priced.has_value(), priced ? "" : priced.error().message().c_str());
    QCOMPARE(priced->weights[0].all_bytes, 4 * 80 * 4.0);
  }

  // A quarter of the samples on a V100, the others on an A100; both wait for the gradient's 80 elements, which pass
  // the link in two hops.
  void unlike_devices_by_hand() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x1+a100-80gb-1x1");
    const RatioPlan plan = *evaluate_ratio_plan(*scenario, cut_by("batch", 3, *scenario));
    const auto seconds = [&](std::uint32_t device, double rows, double flop_per_row, double bytes) {
      const DeviceType& type = device_of(*scenario->cluster, device);
      return std::max(rows * flop_per_row / (type.peak_fp32 * type.efficiency(Precision::fp32)),
                      bytes / (type.memory_bandwidth * type.memory_efficiency)) +
             type.product_launch();
    };
    // Forward reads the rows and the weights and writes the result.
    const double forward =
        std::max(seconds(0, 3, 2 * 80, 4 * (30 + 80 + 24)), seconds(1, 9, 2 * 80, 4 * (90 + 80 + 72)));
    CostBreakdown cost = plan.operators.back().cost;
    QVERIFY(close(cost[ComputePart::forward], forward));
    const LinkLevel& link = scenario->cluster->links[kInterNode];
    QVERIFY(close(cost[NetworkPart::all_reduce], 80 * 4 / link.bandwidth + 2 * link.latency_s));
    QCOMPARE(plan.device_memory.size(), std::size_t(2));
    // Weights, gradients and Adam's moments are whole on both; the rows that backward reads are not.
    QCOMPARE(plan.device_memory[0], 80 * 16 + 3 * 10 * 4);
    QCOMPARE(plan.device_memory[1], 80 * 16 + 9 * 10 * 4);
    QCOMPARE(plan.most_memory(), plan.device_memory[1]);
  }

  // Cut by what is summed over, each half has its weights alone and nothing is left to be summed but the result, which
  // nobody reads; by the output, the error of the input would be summed, which data does not have.
  void reduction_and_output_split_the_weights() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x2");
    for (const auto& [loop, first, rows] : {std::tuple("in-channel", 4, 12 * 4), {"out-channel", 6, 12 * 10}}) {
      const RatioPlan plan = *evaluate_ratio_plan(*scenario, cut_by(loop, first, *scenario));
      const int weights = std::string(loop) == "in-channel" ? 4 * 8 : 10 * 6;
      QCOMPARE(plan.cost.network_s(), 0.0);
      QCOMPARE(plan.device_memory[0], weights * 16 + rows * 4);
    }
  }

  // A sixth of 12 rows becomes a quarter of 8 columns: a half fetches what it wants of the rows that it lacks.
  void rows_become_columns() {
    ModelBuilder b("two", "test", 12, 0);
    TensorId x = b.input("x", {12, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("fc1", x, b.parameter("w1", {10, 8}));
    x = b.linear("fc2", x, b.parameter("w2", {8, 6}));
    const auto scenario = rings_on(finished(b, x), "v100-16gb-1x2");
    RatioPlan plan = cut_by("batch", 2, *scenario);
    RatioPlan::Share& second = plan.cuts[0].share.back();
    second = {loop_of(scenario->model->operators[OperatorId(2)], "in-channel"), 2};
    const RatioPlan made = *evaluate_ratio_plan(*scenario, plan);
    const LinkLevel& link = scenario->cluster->links[kIntraNode];
    CostBreakdown cost = made.cost;
    const double there = std::max(2.0 / 8 * 10 / 12, 6.0 / 8 * 2 / 12),
                 back = std::max(2.0 / 12 * 6 / 8, 10.0 / 12 * 2 / 8);
    QVERIFY(close(cost[NetworkPart::all_to_all], (there + back) * 96 * 4 / link.bandwidth + 2 * link.latency_s));
  }

  // Two devices with a quarter of the rows against one with the rest: the pair has twice the links, and fetches three
  // quarters over them.
  void a_larger_half_has_more_links() {
    ModelBuilder b("two", "test", 12, 0);
    TensorId x = b.input("x", {12, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("fc1", x, b.parameter("w1", {10, 8}));
    x = b.linear("fc2", x, b.parameter("w2", {8, 6}));
    const auto scenario = rings_on(finished(b, x), "v100-16gb-1x3");
    RatioPlan plan = cut_by("batch", 3, *scenario);
    plan.order = {0, 1, 2};
    plan.parts = {{1, {}}, {2, {0, 0}}, {3, {1, 0}}};
    plan.cuts[0].part = 2;
    plan.cuts[0].share.back() = {loop_of(scenario->model->operators[OperatorId(2)], "out-channel"), 3};
    plan.cuts[0].next = {1, RatioPlan::kNoCut};
    plan.cuts.push_back({1, 0.5, std::vector<RatioPlan::Share>(3), {RatioPlan::kNoCut, RatioPlan::kNoCut}});
    const auto made = evaluate_ratio_plan(*scenario, plan);
    QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
    CostBreakdown cost = made->cost;
    const LinkLevel& link = scenario->cluster->links[kIntraNode];
    QVERIFY(close(cost[NetworkPart::all_gather], 0.75 * 96 * 4 / (2 * link.bandwidth) + link.latency_s));
    QVERIFY(close(cost[NetworkPart::reduce_scatter], 0.75 * 96 * 4 / link.bandwidth + link.latency_s));
    QVERIFY(close(cost[NetworkPart::all_reduce], 80 * 4 / link.bandwidth + 2 * link.latency_s));
  }

  // On the second device fc1 and relu run again: what relu made, which relu and fc2 read, is not kept there, as far as
  // fc2 reads it as relu left it. relu alone spares nothing, because what it reads has to be kept then.
  void what_runs_again_is_not_kept() {
    ModelBuilder b("again", "test", 12, 0);
    TensorId x = b.input("x", {12, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
    x = b.linear("fc1", x, b.parameter("w1", {10, 8}));
    x = b.elementwise("relu", "Relu", std::array{x}, {1, true, {}});
    x = b.linear("fc2", x, b.parameter("w2", {8, 6}));
    const auto scenario = rings_on(finished(b, x), "v100-16gb-1x1+a100-80gb-1x1");
    const Model& model = *scenario->model;
    RatioPlan plan = cut_by("batch", 3, *scenario);
    for (RatioPlan::Share& share : plan.cuts[0].share) share = {0, 3};  // each operator's first loop is its rows
    const auto again = [&](RatioPlan changed, std::vector<OperatorId> operators) {
      changed.reruns = {{{1}, std::move(operators)}};
      return *evaluate_ratio_plan(*scenario, changed);
    };
    const RatioPlan plain = *evaluate_ratio_plan(*scenario, plan);
    QCOMPARE(again(plan, {OperatorId(2)}).device_memory, plain.device_memory);
    const RatioPlan both = again(plan, {OperatorId(1), OperatorId(2)});
    QCOMPARE(both.device_memory[0], plain.device_memory[0]);
    QCOMPARE(both.device_memory[1], plain.device_memory[1] - 9 * 8 * 4);
    QVERIFY(close(both.device_compute_s[0], plain.device_compute_s[0]));
    const RatioCharges charges(*scenario, plan);
    double seconds = 0;
    for (const std::size_t o : {1u, 2u}) {
      std::vector<std::int64_t> lengths{9};
      for (std::size_t l = 1; l < model.operators[OperatorId(o)].dims.size(); ++l)
        lengths.push_back(model.operators[OperatorId(o)].dims[l].size);
      seconds += charges.device_cost(OperatorId(o), 1, lengths)[ComputePart::forward];
    }
    QVERIFY(close(both.device_compute_s[1], plain.device_compute_s[1] + seconds));
    QCOMPARE(both.cost.network_s(), plain.cost.network_s());
    // fc2 sums over channels instead: what it reads came over the cut, and stays.
    plan.cuts[0].share.back() = {loop_of(model.operators[OperatorId(3)], "in-channel"), 2};
    const RatioPlan columns = *evaluate_ratio_plan(*scenario, plan);
    QCOMPARE(again(plan, {OperatorId(1), OperatorId(2)}).device_memory[1], columns.device_memory[1] - 9 * 8 * 4);
    QVERIFY(columns.device_memory[1] - plain.device_memory[1] > 0);
    // Of a partial sum the sum that is read is kept, although it has the same shape.
    plan.cuts[0].share[1] = {loop_of(model.operators[OperatorId(1)], "in-channel"), 4};
    plan.cuts[0].share[2] = {}, plan.cuts[0].share[3] = {};
    const RatioPlan summed = *evaluate_ratio_plan(*scenario, plan);
    QCOMPARE(again(plan, {OperatorId(1)}).device_memory, summed.device_memory);
  }

  void broken_plans_are_refused() {
    const auto scenario = rings_on(one_product(), "v100-16gb-1x2");
    const auto refusal = [&](const std::function<void(RatioPlan&)>& change) {
      RatioPlan plan = cut_by("batch", 3, *scenario);
      change(plan);
      const auto made = evaluate_ratio_plan(*scenario, plan);
      return made ? std::string() : made.error().message();
    };
    QVERIFY(refusal([](RatioPlan&) {}).empty());
    const std::pair<std::function<void(RatioPlan&)>, const char*> broken[] = {
        {[](RatioPlan& p) {
           p.order = {0, 0};
         },
         "does not name each of 2 devices once"},
        {[](RatioPlan& p) { p.order = {0}; }, "does not name each of 2 devices once"},
        {[](RatioPlan& p) { p.parts.clear(); }, "has no parts"},
        {[](RatioPlan& p) {
           p.parts.back().halves = {1, 1};
         },
         "part 1 is not made of two parts before it"},
        {[](RatioPlan& p) { p.parts.back().devices = 3; }, "part 1 is not made of two parts before it"},
        {[](RatioPlan& p) { p.cuts.clear(); }, "part 1 has no cut of its own"},
        {[](RatioPlan& p) { p.cuts[0].part = 7; }, "cut 0 needs a part"},
        {[](RatioPlan& p) { p.cuts[0].ratio = 1; }, "a ratio between 0 and 1"},
        {[](RatioPlan& p) { p.cuts[0].share.pop_back(); }, "a share for each operator"},
        {[](RatioPlan& p) { p.cuts[0].next[0] = 0; }, "cuts a single device"},
        {[](RatioPlan& p) { p.cuts[0].share.back().loop = 9; }, "'fc' has no loop 9"},
        {[](RatioPlan& p) { p.cuts[0].share.back().first = 0; }, "a part 0 of 12 batch"},
        {[](RatioPlan& p) { p.cuts[0].share.back().first = 12; }, "a part 12 of 12 batch"},
        {[](RatioPlan& p) {
           p.reruns = {{{2}, {OperatorId(1)}}};
         },
         "runs again on device 2 is not said once of one of 2 devices"},
        {[](RatioPlan& p) {
           p.reruns = {{{1}, {OperatorId(1)}}, {{1}, {}}};
         },
         "runs again on device 1 is not said once of one of 2 devices"},
        {[](RatioPlan& p) {
           p.reruns = {{{1, 0}, {OperatorId(1)}}};
         },
         "is not in rising order"},
        {[](RatioPlan& p) {
           p.reruns = {{{0}, {OperatorId(7)}}};
         },
         "operator 7 is to run again, and there are 2"},
        {[](RatioPlan& p) {
           p.reruns = {{{0}, {OperatorId(0)}}};
         },
         "'x' computes nothing that could run again"},
    };
    for (const auto& [change, words] : broken) {
      const std::string said = refusal(change);
      QVERIFY2(said.find(words) != std::string::npos, (said + " for " + words).c_str());
    }
    auto eight = std::make_shared<Scenario>(*scenario);
    eight->settings.precision = Precision::fp8;
    QVERIFY(!evaluate_ratio_plan(*eight, cut_by("batch", 3, *scenario)).has_value());
  }

  void whether_it_fits_is_each_devices_own_matter() {
    auto scenario = std::make_shared<Scenario>(*rings_on(one_product(), "v100-16gb-1x1+a100-80gb-1x1"));
    RatioPlan plan = *evaluate_ratio_plan(*scenario, cut_by("batch", 3, *scenario));
    QVERIFY(fits(*scenario, plan));
    plan.device_memory = {std::int64_t(1) << 30, std::int64_t(60) << 30};  // more than the V100 has, on the A100
    QVERIFY(fits(*scenario, plan));
    std::swap(plan.device_memory[0], plan.device_memory[1]);
    QVERIFY(!fits(*scenario, plan));
    scenario->settings.memory_limit = std::int64_t(2) << 30;
    plan.device_memory = {std::int64_t(1) << 30, std::int64_t(3) << 30};
    QVERIFY(!fits(*scenario, plan));
  }
};

QTEST_APPLESS_MAIN(RatioEvaluatorTest)
#include "ratio_evaluator_test.moc"
