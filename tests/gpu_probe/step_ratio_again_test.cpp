// SPDX-License-Identifier: Apache-2.0
// What runs again on ranks of a ratio plan: what they keep then, by hand, and that nothing more is sent. That the step
// stays the same is proven with plans by chance in step_ratio_test.cpp.
#include <QtTest>

#include "gpu_probe/step/ratio_run.h"
#include "gpu_probe/step_models.h"
#include "gpu_probe/step_ratios.h"

using namespace turnpoint;
using test::ratio_job;

namespace {

/// x [12, 10] -> 8 -> 6 -> 4 with a view on the way, no biases; the first rank has nine rows, the other three.
StepJob three_quarters(std::vector<std::vector<OperatorId>> again, ModelPtr* made = nullptr) {
  ModelBuilder b("products", "test", 12, 0);
  TensorId x = b.input("x", {12, 10}, {DimName::batch, DimName::channel}, ElementType::f32);
  x = b.linear("fc1", x, b.parameter("w1", {10, 8}));
  x = b.linear("fc2", x, b.parameter("w2", {8, 6}));
  x = b.reshape("view", x, {12, 2, 3});
  x = b.reshape("back", x, {12, 6});
  const ModelPtr model = test::finished(b, b.linear("fc3", x, b.parameter("w3", {6, 4})));
  if (made) *made = model;
  StepRatio ratio = test::uncut_ratio(*model, 2, true);
  test::set_shares(*model, ratio, [&](std::uint32_t, OperatorId id, const std::vector<std::int64_t>&) {
    const Operator& op = model->operators[id];
    for (std::size_t l = 0; l < op.dims.size(); ++l)
      if (op.dims[l].name == DimName::batch) return StepRatio::Share{static_cast<std::int8_t>(l), 9};
    return StepRatio::Share{};
  });
  ratio.again = std::move(again);
  return ratio_job(model, ratio);
}

}  // namespace

class StepRatioAgainTest : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::in_double()};

 private slots:
  // fc1 and fc2 run again on rank 1 alone: it keeps what they read of x, where it kept what fc2 and fc3 read as well;
  // what fc3 reads is a view of what fc2 makes again.
  void what_runs_again_is_not_kept() {
    ModelPtr model;
    const StepJob plain = three_quarters({}, &model);
    const auto named = [&](const char* name) {
      for (std::size_t o = 0; o < model->operators.size(); ++o)
        if (model->operators[OperatorId(o)].name == name) return OperatorId(o);
      return OperatorId();
    };
    const OperatorId fc1 = named("fc1"), fc2 = named("fc2"), fc3 = named("fc3");
    const StepJob job = three_quarters({{}, {fc1, fc2}});
    const auto before = step::run_ratio(step::in_double(), plain, step::options_of(plain)),
               after = step::run_ratio(step::in_double(), job, step::options_of(job));
    QVERIFY(before && after);
    QVERIFY(std::abs(before->step.loss - after->step.loss) < 1e-12 * std::abs(before->step.loss));
    const auto kept = [](const auto& run, std::size_t rank) {
      return run->step.ranks[rank].after_forward[step::Held::kept];
    };
    QCOMPARE(kept(before, 0), std::int64_t(9 * (10 + 8 + 6) * 4));
    QCOMPARE(kept(after, 0), kept(before, 0));
    QCOMPARE(kept(before, 1), std::int64_t(3 * (10 + 8 + 6) * 4));
    QCOMPARE(kept(after, 1), std::int64_t(3 * 10 * 4));
    for (const auto& rank : after->step.ranks) QCOMPARE(rank.ledger[step::Held::kept], std::int64_t(0));
    const auto again_s = [&](std::size_t rank, OperatorId op) {
      return after->step.ranks[rank].seconds[op.index][std::size_t(StepPhase::recompute)];
    };
    QVERIFY(again_s(1, fc1) > 0 && again_s(1, fc2) > 0);
    QVERIFY(again_s(1, fc3) == 0 && again_s(0, fc1) == 0);
    for (std::size_t r = 0; r < 2; ++r)
      for (std::size_t l = 0; l < after->lines.size(); ++l) QCOMPARE(after->came[r][l].all, before->came[r][l].all);
  }
};

QTEST_MAIN(StepRatioAgainTest)
#include "step_ratio_again_test.moc"
