// SPDX-License-Identifier: Apache-2.0
// The peak of a step that runs one item after another, where two readers share a tensor: what of its copies is there
// beside what, counted by hand. A copy that is made again in backward must not be counted twice, and one that the plan
// keeps though no backward reads it must be.
#include <QtTest>
#include <array>
#include <optional>

#include "core/cost/operator_cost.h"
#include "core/plan/evaluator.h"
#include "core/schedule/plan_lowering.h"
#include "search/scenario_on.h"
#include "search/small_models.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

// x [64, 16] -> stem -> y [64, 32], from which two products make a and b [64, 16]; their sum is the result. All in fp32
// on two devices: x and y are split over the batch, the rest is whole on either device. In bytes on one device:
constexpr std::int64_t kX = 64 / 2 * 16 * 4;     // 2048, kept for backward of the stem
constexpr std::int64_t kHalf = 64 / 2 * 32 * 4;  // 4096, y as the stem makes it; its gradient as the stem takes it
constexpr std::int64_t kWhole = 64 * 32 * 4;     // 8192, y as its readers want it; its gradient as each gives it
constexpr std::int64_t kSide = 64 * 16 * 4;      // 4096, each of a, b, their sum, and the gradients of the three
constexpr std::int64_t kWeight = 16 * 32 * 4;    // 2048, the gradient of any of the three weights

constexpr std::uint32_t kStem = 1, kLeft = 2, kRight = 3;

ModelPtr two_readers() {
  ModelBuilder b("two readers", "test", 64, 0);
  const TensorId x = b.input("x", {64, 16}, {DimName::batch, DimName::channel}, ElementType::f32);
  const TensorId y = b.linear("stem", x, b.parameter("w", {16, 32}));
  const TensorId left = b.linear("left", y, b.parameter("wl", {32, 16}));
  const TensorId right = b.linear("right", y, b.parameter("wr", {32, 16}));
  const std::array both{left, right};
  return finished(b, b.elementwise("add", "Add", both));
}

struct Case {
  ScenarioPtr scenario = scenario_on(two_readers(), "v100-16gb-1x2");
  Mesh mesh = make_mesh(*scenario->cluster);
  ReshardingModel resharding{mesh, CollectiveModel(*scenario->cluster, scenario->settings.factors), 1e12};
  TensorUses uses = analyse_tensor_uses(*scenario->model);
  OperatorCostModel costs{*scenario, uses, resharding};

  Plan plan(bool stem_runs_again = false) {
    const Model& model = *scenario->model;
    Plan plan;
    plan.mesh = mesh;
    for (std::size_t i = 0; i < model.operators.size(); ++i) {
      PlanOperator item;
      item.op = OperatorId(i);
      if (i <= kStem) item.split = data_parallel_configuration(model.operators[item.op], mesh);
      item.choice.recompute = i == kStem && stem_runs_again;
      auto cost = costs.cost(item.op, item.split, item.choice, true);
      item.cost = cost.breakdown;
      item.parameters = std::move(cost.parameters);
      if (item.choice.recompute) item.cost[ComputePart::recompute] += costs.forward_s(item.op, item.split);
      plan.operators.push_back(std::move(item));
    }
    return plan;
  }

  /// y brought from its halves to the whole: once for both readers, or for one of them.
  PlanReshard gather(const Plan& plan, std::optional<std::uint32_t> reader, Keep keep) const {
    const Model& model = *scenario->model;
    const Operator& stem = model.operators[OperatorId(kStem)];
    const Operator& left = model.operators[OperatorId(kLeft)];
    PlanReshard made;
    made.tensor = stem.outputs[0].tensor;
    made.producer = OperatorId(kStem);
    if (reader) made.consumer = OperatorId(*reader);
    made.from = forward_layout(stem, stem.outputs[0], true, plan.operators[kStem].split, mesh.count());
    made.to = gradient_layout(left, left.inputs[0], false, plan.operators[kLeft].split, mesh.count());
    const auto& shape = model.tensors[made.tensor].shape;
    made.forward = resharding.path(shape, 4, made.from, made.to).steps;
    made.gradient = resharding.path(shape, 4, made.to, made.from).steps;
    made.keep = keep;
    if (keep == Keep::before) made.repeated = made.forward;
    return made;
  }

  /// Of what comes and goes; -1: the plan is none.
  std::int64_t peak(const Plan& plan, UnreadCopies unread) const {
    if (const auto cost = evaluate_plan(*scenario, plan); !cost) return qWarning("%s", cost.error().what.c_str()), -1;
    const auto lowered = PlanLowering(*scenario).lower(plan, unread);
    if (!lowered) return qWarning("%s", lowered.error().what.c_str()), -1;
    LaneTimes one_after_another;
    for (std::size_t i = 0; i < lowered->items.size(); ++i) {
      one_after_another.start_s.push_back(double(i));
      one_after_another.end_s.push_back(double(i + 1));
    }
    return memory_over_time(lowered->buffers, one_after_another, {0}, false)[0].peak_bytes;
  }
};

}  // namespace

class UnreadCopiesTest : public QObject {
  Q_OBJECT

 private slots:
  // The halves are kept and the whole is gathered once more in backward, for both readers. Highest is backward of the
  // left reader, the later of the two: the whole made again, the gradients of y from both readers, that of a, x for the
  // stem, and the gradients of both readers' weights. The halves went when the whole was made again. The whole of the
  // way forward went when the right reader had run: nobody holds it, whether or not copies without a reader are kept.
  void a_copy_made_again_is_counted_once() {
    Case c;
    Plan plan = c.plan();
    plan.reshards = {c.gather(plan, std::nullopt, Keep::before)};
    constexpr std::int64_t by_hand = kWhole + 2 * kWhole + kSide + kX + 2 * kWeight;
    static_assert(by_hand == 34816);
    QCOMPARE(c.peak(plan, UnreadCopies::freed), by_hand);
    QCOMPARE(c.peak(plan, UnreadCopies::kept), by_hand);
  }

  // Here the whole is kept and the halves are not: the same moment, with the copy of the way forward as the only one.
  void a_copy_that_is_kept_is_the_one_that_is_read() {
    Case c;
    Plan plan = c.plan();
    plan.reshards = {c.gather(plan, std::nullopt, Keep::after)};
    constexpr std::int64_t by_hand = kWhole + 2 * kWhole + kSide + kX + 2 * kWeight;
    QCOMPARE(c.peak(plan, UnreadCopies::freed), by_hand);
    QCOMPARE(c.peak(plan, UnreadCopies::kept), by_hand);
  }

  // Each reader gathers a whole of its own and keeps it. Highest is backward of the right reader, the first that has
  // both: two wholes, the gradient of y from the right, those of a and b, x, and the gradient of the right weight. The
  // halves are the shared copy, which the plan counts and no backward reads: beside that, where such are kept.
  void a_copy_that_the_plan_keeps_for_nobody_is_counted() {
    Case c;
    Plan plan = c.plan();
    plan.reshards = {c.gather(plan, kLeft, Keep::after), c.gather(plan, kRight, Keep::after)};
    constexpr std::int64_t by_hand = 2 * kWhole + kWhole + 2 * kSide + kX + kWeight;
    static_assert(by_hand == 36864);
    QCOMPARE(c.peak(plan, UnreadCopies::freed), by_hand);
    QCOMPARE(c.peak(plan, UnreadCopies::kept), by_hand + kHalf);
  }

  // The same where the stem runs again in backward: then the plan counts no halves, and none are kept.
  void a_copy_whose_maker_runs_again_is_not_kept() {
    Case c;
    Plan plan = c.plan(true);
    plan.reshards = {c.gather(plan, kLeft, Keep::after), c.gather(plan, kRight, Keep::after)};
    constexpr std::int64_t by_hand = 2 * kWhole + kWhole + 2 * kSide + kX + kWeight;
    QCOMPARE(c.peak(plan, UnreadCopies::freed), by_hand);
    QCOMPARE(c.peak(plan, UnreadCopies::kept), by_hand);
  }
};

QTEST_APPLESS_MAIN(UnreadCopiesTest)
#include "unread_copies_test.moc"
