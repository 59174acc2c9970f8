// SPDX-License-Identifier: Apache-2.0
#include "core/cost/parameters.h"

#include <QtTest/QtTest>
#include <random>

#include "core/cost/operator_cost.h"
#include "search/scenario_on.h"
#include "search/small_models.h"

using namespace turnpoint;

class ParametersTest : public QObject {
  Q_OBJECT
 private slots:
  void a_flat_list_gives_the_groups_again();
  void steps_that_no_group_explains_are_kept();
};

namespace {

bool same(const std::vector<ReshardStep>& a, const std::vector<ReshardStep>& b) {
  return std::ranges::equal(a, b, [](const ReshardStep& one, const ReshardStep& other) {
    return one.move == other.move && one.axes == other.axes && one.bytes == other.bytes && one.time_s == other.time_s;
  });
}

std::vector<ParameterGroup> groups_of(const std::vector<ParameterSteps>& parameters) {
  std::vector<ParameterGroup> groups;
  for (const auto& steps : parameters) groups.push_back(steps.group);
  return groups;
}

}  // namespace

// Whatever an operator's split and memory choice: what a file lists tells gathers, sums and new weights of every group.
void ParametersTest::a_flat_list_gives_the_groups_again() {
  std::mt19937_64 random(7);
  int several = 0, gathered = 0, spread = 0;
  for (const char* machine : {"v100-16gb-1x4", "v100-16gb-2x4"})
    for (const ModelPtr& of : {test::mlp(), test::attention()}) {
      const auto scenario = test::scenario_on(of, machine);
      const Model& model = *scenario->model;
      const TensorUses uses = analyse_tensor_uses(model);
      const Mesh mesh = make_mesh(*scenario->cluster);
      const ReshardingModel resharding(mesh, CollectiveModel(*scenario->cluster, scenario->settings.factors), 1e12);
      const OperatorCostModel costs(*scenario, uses, resharding);
      const std::uint32_t all = (1u << mesh.count()) - 1;
      auto choices = enumerate_choices(sharing_groups(mesh, all, all), {true, true, true});
      choices.push_back({Update::sharded_state, all, false, false});
      for (std::size_t i = 0; i < model.operators.size(); ++i)
        for (const Configuration& split :
             enumerate_configurations(model, model.operators[OperatorId(i)], mesh, false)) {
          const MemoryChoice choice = choices[random() % choices.size()];
          const auto made = costs.cost(OperatorId(i), split, choice, true).parameters;
          QCOMPARE(groups_of(made), parameter_groups(model, uses, OperatorId(i), split, mesh.count()));
          const auto again = in_groups(groups_of(made), all_steps(made), choice);
          QCOMPARE(again.size(), made.size());
          several += made.size() > 1;
          for (std::size_t g = 0; g < made.size(); ++g) {
            QCOMPARE(again[g].group, made[g].group);
            for (const ParameterRole role : kParameterRoles) QVERIFY(same(again[g].steps(role), made[g].steps(role)));
            gathered += !made[g].gather.empty(), spread += !made[g].spread.empty();
          }
        }
    }
  QVERIFY(several > 20 && gathered > 20 && spread > 20);
}

// A file may hold anything; the evaluator, which comes later, must see all of it.
void ParametersTest::steps_that_no_group_explains_are_kept() {
  ReshardStep sum, gather;
  sum.move = ReshardMove::all_reduce, sum.axes = 1;
  gather.move = ReshardMove::all_gather, gather.axes = 1;
  const std::vector<ReshardStep> steps = {sum, sum, gather};
  for (const std::vector<ParameterGroup>& groups :
       {std::vector<ParameterGroup>{}, {ParameterGroup{1, 1, {0}}}, {ParameterGroup{1, 1, {0}}, {1, 3, {1}}}})
    for (const Update update : {Update::replicated, Update::sharded, Update::sharded_weights})
      QVERIFY(same(all_steps(in_groups(groups, steps, {update, 1, false, false})), steps));
}

QTEST_APPLESS_MAIN(ParametersTest)
#include "parameters_test.moc"
