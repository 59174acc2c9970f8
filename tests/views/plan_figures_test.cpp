// SPDX-License-Identifier: Apache-2.0
// Figures of operators and reshardings are those of an iteration, through however many micro-batches it goes.
#include "views/common/plan_figures.h"

#include <QtTest>
#include <numeric>

#include "views/common/format.h"
#include "views/graph_fixture.h"
#include "views/plan/plan_words.h"
#include "views/plan/reshard_model.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

constexpr double kForward_s = 1e-3, kBackward_s = 2e-3, kUpdate_s = 0.5e-3, kOffload_s = 4e-3, kSync_s = 0.25e-3;

/// Every operator costs the same; whether its gradients are summed once or in every micro-batch is its update's.
std::shared_ptr<Plan> in_micro_batches(const Model& model, int micro_batches, Update update) {
  auto plan = fixture::plan(model);
  ReshardStep sync;
  sync.move = ReshardMove::all_reduce, sync.time_s = kSync_s;
  for (PlanOperator& op : plan->operators) {
    op.choice.update = update;
    op.cost = {};
    op.cost[ComputePart::forward] = kForward_s, op.cost[ComputePart::backward] = kBackward_s;
    op.cost[ComputePart::update] = kUpdate_s;
    op.cost[NetworkPart::offload] = kOffload_s, op.cost[NetworkPart::all_reduce] = kSync_s;
    op.parameters.resize(1);
    op.parameters[0].sync = {sync};
  }
  plan->pipeline.emplace().micro_batches = micro_batches;
  return plan;
}

}  // namespace

class PlanFiguresTest : public QObject {
  Q_OBJECT

 private slots:
  void times_are_those_of_all_micro_batches() {
    const ModelPtr model = fixture::transformer(2);
    for (const int m : {1, 2, 16})
      for (const Update update : {Update::replicated, Update::sharded_weights}) {
        const auto plan = in_micro_batches(*model, m, update);
        const auto figures = PlanFigures::make(model, plan);
        QVERIFY(figures);
        const double syncs = update == Update::replicated ? 1 : m;
        const double compute = m * (kForward_s + kBackward_s) + kUpdate_s, network = kOffload_s + syncs * kSync_s;
        double resharded = 0;
        for (const PlanReshard& reshard : plan->reshards) resharded += m * reshard.time_s();
        for (std::uint32_t i = 0; i < model->operators.size(); ++i) {
          QCOMPARE(figures->of(OperatorId(i)).compute_s, compute);
          QCOMPARE(figures->of(OperatorId(i)).network_s, network);
        }
        QVERIFY(resharded > 0);
        QCOMPARE(figures->time_s, double(model->operators.size()) * (compute + network) + resharded);
        const auto facts = describe_operator(*plan, *model, OperatorId(1));
        Plan following = *plan;
        following.operators[1].follows = OperatorId(0);
        const auto more = describe_operator(following, *model, OperatorId(1));
        QCOMPARE(more.size(), facts.size() + 1);
        const QString name = QString::fromStdString(model->operators[OperatorId(0)].name);
        QVERIFY(std::any_of(more.begin(), more.end(),
                            [&](const Fact& fact) { return fact.name == "Follows" && fact.value == name; }));
        QVERIFY(facts.back().value.startsWith(time_text(compute + network)));

        const auto rows = fold_reshards(*plan, *model);
        const auto time = [](double sum, const ReshardRow& row) { return sum + row.time_s; };
        QCOMPARE(std::accumulate(rows.begin(), rows.end(), 0.0, time), resharded);
        const auto one = fold_reshards(*in_micro_batches(*model, 1, update), *model);
        QCOMPARE(rows.size(), one.size());
        for (std::size_t r = 0; r < rows.size(); ++r) QCOMPARE(rows[r].bytes, m * one[r].bytes);
        for (std::size_t r = 0; r < plan->reshards.size(); ++r)
          QCOMPARE(figures->reshards[r].time_s, m * plan->reshards[r].time_s());
      }
  }
};

QTEST_MAIN(PlanFiguresTest)
#include "plan_figures_test.moc"
