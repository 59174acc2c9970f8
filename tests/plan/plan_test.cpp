// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <QtTest>
#include <algorithm>
#include <map>

#include "plan/hand_plan.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

bool equal(const std::vector<ReshardStep>& one, const std::vector<ReshardStep>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const auto& a, const auto& b) {
    return a.move == b.move && a.axes == b.axes && a.result == b.result;
  });
}

}  // namespace

class PlanTest : public QObject {
  Q_OBJECT

 private slots:
  // Files hold the steps of backward as one list.
  void steps_of_backward_find_their_roles_again() {
    std::map<Keep, int> moved;
    int restored = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const ScenarioPtr scenario = scenario_on(mlp(), "v100-16gb-2x4");
      for (const PlanReshard& reshard : hand_plan(*scenario, seed).reshards) {
        PlanReshard read = reshard;
        read.repeated = read.restored = read.gradient = {};
        read.set_backward(reshard.backward());
        for (const ReshardRole role : kReshardRoles) QVERIFY(equal(read.steps(role), reshard.steps(role)));
        moved[reshard.keep] += !reshard.backward().empty();
        restored += !reshard.restored.empty();
      }
    }
    QVERIFY(moved[Keep::before] > 0 && moved[Keep::after] > 0 && moved[Keep::both] > 0 && restored > 0);
  }

  void steps_are_numbered_through_the_roles() {
    PlanReshard reshard;
    reshard.repeated.resize(2);
    reshard.gradient.resize(3);
    QCOMPARE(reshard.first_in_backward(ReshardRole::repeated), std::size_t(0));
    QCOMPARE(reshard.first_in_backward(ReshardRole::restored), std::size_t(2));
    QCOMPARE(reshard.first_in_backward(ReshardRole::gradient), std::size_t(2));
    reshard.restored.resize(1);
    QCOMPARE(reshard.first_in_backward(ReshardRole::gradient), std::size_t(3));
    QCOMPARE(reshard.backward().size(), std::size_t(6));
  }

  // A plan whose backward is cut short is for the evaluator to refuse, not for a reader to stumble over.
  void too_few_steps_are_no_fault() {
    PlanReshard reshard;
    reshard.keep = Keep::before;
    reshard.forward.resize(3);
    reshard.set_backward(std::vector<ReshardStep>(2));
    QCOMPARE(reshard.repeated.size(), std::size_t(2));
    QVERIFY(reshard.gradient.empty());
  }
};

QTEST_APPLESS_MAIN(PlanTest)
#include "plan_test.moc"
