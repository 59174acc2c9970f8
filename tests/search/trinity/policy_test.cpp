// SPDX-License-Identifier: Apache-2.0
// What the policy learns from: the scalar pieces by their worked cases, the gradient of the whole policy against
// differences, and probabilities that come out the same when decisions are looked at again.
#include <QtTest>

#include <cmath>

#include "core/search/trinity/policy.h"
#include "core/search/trinity/problem.h"
#include "core/search/trinity/reward.h"
#include "search/small_graphs.h"
#include "search/trinity/gradient_check.h"

using namespace turnpoint;
using namespace turnpoint::test;
using namespace turnpoint::trinity;
using placement::Random;

namespace {

struct Small {
  TaskGraphPtr graph;
  placement::PlacementRequest request;
  Problem problem;
  std::vector<std::uint8_t> unused;

  explicit Small(std::uint64_t seed)
      : graph(random_task_graph(seed, 6 + seed % 5)),
        problem((request.devices = 3, make_problem(*graph, request, 100, 4))) {}

  PartitionShape partition(std::size_t own_width) const {
    PartitionShape shape;
    shape.units = problem.units.count();
    shape.width = problem.features.width;
    shape.types = problem.features.types;
    shape.groups = problem.groups;
    shape.type_width = 3;
    shape.own_width = own_width;
    shape.clipping = {4, 1.5};
    return shape;
  }
  ScheduleShape schedule(bool reads_group) const {
    ScheduleShape shape;
    shape.groups = problem.groups;
    shape.width = problem.group_width();
    shape.devices = request.devices;
    shape.device_width = Problem::kDeviceFeatures;
    shape.hidden = 5;
    shape.embedding = 3;
    shape.reads_group = reads_group;
    shape.clipping = {4, 1.5};
    return shape;
  }
  auto group_features() const {
    return [this](const std::vector<std::uint32_t>& group_of) { return problem.group_features(group_of); };
  }
};

/// Some of the derivatives by weights are looked at: networks have tens of thousands.
double sampled_error(std::vector<double>& weights, const std::vector<double>& gradient, Random& random,
                     const std::function<double()>& loss) {
  double worst = 0;
  for (int i = 0; i < 150; ++i) {
    const std::size_t at = random.below(weights.size());
    const double before = weights[at], step = 1e-5;
    weights[at] = before + step;
    const double above = loss();
    weights[at] = before - step;
    const double below = loss();
    weights[at] = before;
    const double difference = (above - below) / (2 * step);
    worst = std::max(worst, std::abs(difference - gradient[at]) / std::max(1.0, std::abs(difference)));
  }
  return worst;
}

}  // namespace

class PolicyTest : public QObject {
  Q_OBJECT

 private slots:
  void moving_baseline() {
    MovingBaseline baseline(9);
    QVERIFY(baseline.empty());
    const double rewards[] = {10, 5, 7}, wanted[] = {10, 9, 8.6};
    for (int i = 0; i < 3; ++i) {
      baseline.add(rewards[i]);
      QVERIFY(std::abs(baseline.value() - wanted[i]) < 1e-12);
    }
  }

  void z_scores_are_of_the_population() {
    const std::vector<double> wanted = {-1.5, -.5, -.5, -.5, 0, 0, 1, 2};
    const auto scores = z_scores({2, 4, 4, 4, 5, 5, 7, 9});
    for (std::size_t i = 0; i < wanted.size(); ++i) QVERIFY(std::abs(scores[i] - wanted[i]) < 1e-12);
    QCOMPARE(z_scores({3, 3, 3}), (std::vector<double>{0, 0, 0}));
  }

  void rewards() {
    const RewardWeights weights;
    const auto r = [&](double f, double c, double m) { return trinity_reward(weights, f, c * 1e9, m * 1e9); };
    QVERIFY(std::abs(r(2, 10, 7) + 0.4700) < 5e-5);
    QVERIFY(std::abs(r(2, 8, 8)) < 1e-12);
    QVERIFY(std::abs(r(2, 3, 1)) < 1e-12);
    QVERIFY(std::abs(r(5.21, 12.2, 11.3) + 1.5096) < 5e-5);
    QVERIFY(std::abs(r(0, 0, 0) - std::log(1e9)) < 1e-9);
    QCOMPARE(runtime_reward(4), -2.0);
    RewardWeights bad = weights;
    bad.memory_tolerance = 0;
    QVERIFY(!bad.check());
    QVERIFY(bad.check().error().message().find("tolerance for memory") != std::string::npos);
    bad = weights;
    bad.communication_tolerance = 0;
    QVERIFY(bad.check().error().message().find("tolerance for communication") != std::string::npos);
    bad = weights;
    bad.runtime = -1;
    QVERIFY(!bad.check());
    QVERIFY(weights.check());
  }

  void the_peak_is_of_one_pair() {
    Simulation simulation;
    simulation.devices.resize(3);
    const auto send = [&](std::uint32_t from, std::uint32_t to, std::int64_t bytes) {
      SimulatedTransfer transfer;
      transfer.from = from, transfer.to = to, transfer.bytes = bytes;
      simulation.transfers.push_back(transfer);
    };
    send(0, 1, 100), send(0, 1, 50), send(1, 0, 120), send(0, 2, 149);
    QCOMPARE(peak_communication(simulation), std::int64_t(150));
    QCOMPARE(peak_communication({}), std::int64_t(0));
  }

  /// The minimum of both terms, not the printed maximum, which would give 3.0, -1.0, -2.4 and 1.6 elsewhere.
  void clipped_surrogates() {
    const double ratio[] = {1.5, 0.5, 1.5, 0.5}, advantage[] = {2, -2, -2, 2}, wanted[] = {2.4, -1.6, -3.0, 1.0};
    for (int i = 0; i < 4; ++i) QVERIFY(std::abs(clipped_surrogate(ratio[i], advantage[i], 0.2) - wanted[i]) < 1e-12);
    // The slope by the logarithm of the ratio.
    Random random(3);
    for (int i = 0; i < 300; ++i) {
      const double log = 2 * random.unit() - 1, a = 4 * random.unit() - 2, step = 1e-6;
      if (std::abs(std::exp(log) - 1.2) < 1e-4 || std::abs(std::exp(log) - 0.8) < 1e-4) continue;
      const double slope =
          (clipped_surrogate(std::exp(log + step), a, 0.2) - clipped_surrogate(std::exp(log - step), a, 0.2)) /
          (2 * step);
      QVERIFY(std::abs(slope - clipped_surrogate_slope(std::exp(log), a, 0.2)) < 1e-6);
    }
  }

  void the_whole_policys_gradient_data() {
    QTest::addColumn<bool>("clipped");
    QTest::addColumn<bool>("joint");
    QTest::addColumn<bool>("reads_group");
    QTest::newRow("a ratio per decision") << true << false << true;
    QTest::newRow("one ratio per rollout, the paper's decoder") << true << true << false;
    QTest::newRow("the plain policy gradient") << false << false << true;
  }
  void the_whole_policys_gradient() {
    QFETCH(bool, clipped);
    QFETCH(bool, joint);
    QFETCH(bool, reads_group);
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const Small small(seed);
      Random random(seed);
      Policy<double> policy(small.partition(reads_group ? 2 : 0), small.schedule(reads_group),
                            small.problem.device_features, small.problem.features, random);
      std::vector<double> mask(small.problem.units.count() * PartitionNetwork<double>::kFirst);
      networks::draw_dropout(0.3, random, mask);
      std::vector<Random> streams;
      for (std::uint64_t k = 0; k < 5; ++k) streams.emplace_back(seed * 10 + k);
      ThreadPool pool(1);
      std::vector<Rollout> rollouts;
      policy.draw(mask, 0.1, small.group_features(), streams, pool, rollouts);
      for (std::size_t k = 0; k < rollouts.size(); ++k) {
        rollouts[k].credit = {.advantage = k % 2 ? 1.5 : -0.75, .share = 0.2};
        // As if the policy had moved since, some of it out of the trust region.
        for (auto* decisions : {&rollouts[k].units, &rollouts[k].groups})
          for (float& old : decisions->old) old += float((joint ? 0.1 : 0.8) * (random.unit() - 0.5));
      }
      rollouts[4].credit = {.imitation = 0.7, .share = 0.2};
      const Weighting weighting{.clipped = clipped, .joint = joint, .epsilon = 0.2, .entropy = 0.03};
      Policy<double>::Blocks gradient, unused;
      policy.loss(rollouts, weighting, mask, pool, gradient);
      const auto loss = [&] { return policy.loss(rollouts, weighting, mask, pool, unused).value; };
      QVERIFY(networks::norm({gradient.partition.begin(), gradient.partition.end()}) > 1e-3);
      QVERIFY(networks::norm({gradient.schedule.begin(), gradient.schedule.end()}) > 1e-3);
      QVERIFY(sampled_error(policy.weights().partition, gradient.partition, random, loss) < 1e-6);
      QVERIFY(sampled_error(policy.weights().schedule, gradient.schedule, random, loss) < 1e-6);
    }
  }

  /// Also with noise while drawing, which changes what is drawn and not how likely the policy says it is.
  void drawn_probabilities_come_out_again() {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const Small small(seed);
      Random random(seed);
      const Policy<float> policy(small.partition(2), small.schedule(seed % 2), small.problem.device_features,
                                 small.problem.features, random);
      std::vector<float> mask(small.problem.units.count() * PartitionNetwork<float>::kFirst);
      networks::draw_dropout(0.3, random, mask);
      std::vector<Random> streams;
      for (std::uint64_t k = 0; k < 7; ++k) streams.emplace_back(k);
      ThreadPool pool(2);
      std::vector<Rollout> rollouts;
      policy.draw(mask, seed % 3 ? 0.1 : 0, small.group_features(), streams, pool, rollouts);
      std::vector<Rollout> again = rollouts;
      policy.remember(mask, pool, again);
      for (std::size_t k = 0; k < rollouts.size(); ++k)
        for (const auto of : {&Rollout::units, &Rollout::groups}) {
          QCOMPARE((again[k].*of).old.size(), (rollouts[k].*of).old.size());
          for (std::size_t i = 0; i < (rollouts[k].*of).old.size(); ++i)
            QVERIFY(std::abs((again[k].*of).old[i] - (rollouts[k].*of).old[i]) < 1e-5f);
        }
    }
  }

  /// Shares of what is drawn are the probabilities.
  void draws_follow_the_probabilities() {
    const Small small(3);
    Random random(3);
    const Policy<float> policy(small.partition(2), small.schedule(true), small.problem.device_features,
                               small.problem.features, random);
    std::vector<Random> streams;
    constexpr int kDraws = 4000;
    for (std::uint64_t k = 0; k < kDraws; ++k) streams.emplace_back(k * 7919 + 1);
    ThreadPool pool(2);
    std::vector<Rollout> rollouts;
    policy.draw({}, 0, small.group_features(), streams, pool, rollouts);
    for (std::size_t u = 0; u < small.problem.units.count(); ++u) {
      std::vector<double> drawn(small.problem.groups), told(small.problem.groups);
      for (const Rollout& rollout : rollouts) {
        drawn[rollout.units.choice[u]] += 1.0 / kDraws;
        told[rollout.units.choice[u]] = std::exp(double(rollout.units.old[u]));
      }
      for (std::size_t g = 0; g < drawn.size(); ++g) QVERIFY(std::abs(drawn[g] - told[g]) < 0.035);
    }
  }
};

QTEST_APPLESS_MAIN(PolicyTest)
#include "policy_test.moc"
