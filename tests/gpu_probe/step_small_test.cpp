// SPDX-License-Identifier: Apache-2.0
// The first thing that must hold: a small network's step on 2 and 4 ranks is the unpartitioned step. And the check can
// fail: plans with a piece taken out or changed are refused, and one wrong number is seen.
#include <QtTest>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/values/place.h"
#include "gpu_probe/step_checks.h"
#include "plan/hand_plan.h"

using namespace turnpoint;

class StepSmallTest : public QObject {
  Q_OBJECT
  const step::ComputeIn here_{step::in_double()};

 private slots:
  /// Against the definition, element by element: blocks that overlap wholly, in part, at an edge or not at all.
  void overlaps_are_copied() {
    std::mt19937 random(5);
    const auto below = [&](std::int64_t n) { return std::int64_t(random() % std::uint64_t(n)); };
    for (int trial = 0; trial < 2000; ++trial) {
      const auto rank = std::size_t(below(5));
      step::Shape shape(rank);
      for (auto& size : shape) size = 1 + below(5);
      const auto region = [&] {
        step::Region part{step::Shape(rank, 0), shape};
        for (std::size_t d = 0; d < rank; ++d)
          if (below(3) == 0) {
            part.offset[d] = below(shape[d]);
            part.extent[d] = 1 + below(shape[d] - part.offset[d]);
          }
        return part;
      };
      const step::Region from = region(), to = region();
      const bool add = below(2) == 1;
      std::vector<double> source(std::size_t(from.elements())), target(std::size_t(to.elements()));
      std::map<std::int64_t, double> held;
      step::for_each_element(from, shape,
                             [&](std::size_t i, std::int64_t index) { held[index] = source[i] = double(index + 1); });
      for (std::size_t i = 0; i < target.size(); ++i) target[i] = -1000.0 * double(i + 1);
      std::vector<double> expected = target;
      step::for_each_element(to, shape, [&](std::size_t i, std::int64_t index) {
        if (held.count(index)) expected[i] = (add ? expected[i] : 0) + held[index];
      });
      step::copy_overlap(from, source.data(), to, target.data(), add);
      QVERIFY(target == expected);
    }
  }

  void collectives_do_what_they_say() {
    for (const int n : {1, 2, 3, 5}) {
      for (const std::int64_t length : {std::int64_t(0), std::int64_t(1), std::int64_t(7), std::int64_t(30)}) {
        step::ThreadRanks ranks(n + 1);  // the group is all ranks but the first
        step::Group group;
        for (int r = 1; r <= n; ++r) group.push_back(r);
        const step::Cuts cuts = step::even_cuts(length, group.size());
        std::vector<std::int64_t> received(std::size_t(n) * 3, 0);
        std::vector<int> wrong(std::size_t(n), 0);
        {
          std::vector<std::jthread> threads;
          for (int r = 1; r <= n; ++r)
            threads.emplace_back([&, r] {
              const step::ComputeIn here(step::in_double());
              const auto me = std::size_t(r - 1);
              const auto c = ranks.communicator(r);
              const auto value = [&](int rank, std::int64_t i) { return double(rank * 100) + double(i); };
              std::vector<double> sum(std::size_t(length), 0.0), mine(std::size_t(length), -1.0);
              for (std::int64_t i = 0; i < length; ++i)
                for (const int other : group) sum[std::size_t(i)] += value(other, i);
              for (std::int64_t i = 0; i < length; ++i) mine[std::size_t(i)] = value(r, i);
              auto data = mine;
              bool fine = c->all_reduce(group, data).has_value() && data == sum;
              received[me * 3] = c->take_received();
              data = mine;
              fine = fine && c->reduce_scatter(group, cuts, data).has_value();
              for (auto i = cuts[me]; i < cuts[me + 1]; ++i) fine = fine && data[std::size_t(i)] == sum[std::size_t(i)];
              received[me * 3 + 1] = c->take_received();
              data.assign(std::size_t(length), -1.0);
              for (auto i = cuts[me]; i < cuts[me + 1]; ++i) data[std::size_t(i)] = double(i);
              fine = fine && c->all_gather(group, cuts, data).has_value();
              for (std::int64_t i = 0; i < length; ++i) fine = fine && data[std::size_t(i)] == double(i);
              received[me * 3 + 2] = c->take_received();
              std::vector<std::vector<double>> out, in;
              for (const int other : group) {
                out.push_back(std::vector<double>(me + 1, double(r * 100 + other)));
                in.emplace_back(std::size_t(other));
              }
              std::vector<step::ConstNumbers> sent(out.begin(), out.end());
              std::vector<step::Numbers> got(in.begin(), in.end());
              fine = fine && c->all_to_all(group, sent, got).has_value();
              for (std::size_t i = 0; i < group.size(); ++i)
                for (const double v : in[i]) fine = fine && v == double(group[i] * 100 + r);
              wrong[me] = !fine;
            });
        }
        QCOMPARE(std::count(wrong.begin(), wrong.end(), 1), 0);
        std::int64_t totals[3] = {};
        for (std::size_t i = 0; i < received.size(); ++i) totals[i % 3] += received[i];
        QCOMPARE(totals[0], 2 * (n - 1) * length);
        QCOMPARE(totals[1], (n - 1) * length);
        QCOMPARE(totals[2], (n - 1) * length);
      }
    }
  }

  void who_waits_for_a_rank_that_gave_up_is_told() {
    step::ThreadRanks ranks(2);
    const auto other = ranks.communicator(1);
    std::jthread waits([&] {
      const step::ComputeIn here(step::in_double());
      std::vector<double> data(4, 1);
      QVERIFY(!ranks.communicator(0)->all_reduce({0, 1}, data).has_value());
    });
    other->give_up();
  }

  void any_configuration_of_a_chain() {
    test::StepStatistics statistics;
    for (const char* hardware : {"v100-16gb-1x2", "v100-16gb-1x4", "v100-16gb-2x2"}) {
      const auto scenario = test::scenario_on(test::mlp(8), hardware);
      QVERIFY(scenario);
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Plan plan = test::hand_plan(*scenario, seed);
        const std::string fault = test::step_fault(*scenario, plan, &statistics);
        QVERIFY2(fault.empty(), (std::string(hardware) + ", seed " + std::to_string(seed) + ": " + fault).c_str());
      }
    }
    qInfo("%d plans, %d collectives, largest difference %.1e", statistics.plans, statistics.collectives,
          statistics.worst);
  }

  void a_plan_with_a_piece_missing_is_refused() {
    const auto scenario = test::scenario_on(test::mlp(8), "v100-16gb-2x2");
    const auto options = test::step_options(scenario->settings);
    int tried = 0;
    const auto must_fail = [&](const Plan& plan, const char* what) {
      ++tried;
      const auto run = step::run_step(step::in_double(), *scenario->model, plan, options);
      QVERIFY2(!run.has_value(), what);
      QVERIFY(!run.error().message().empty());
    };
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Plan plan = test::hand_plan(*scenario, seed);
      for (std::size_t r = 0; r < plan.reshards.size(); ++r) {
        const auto& reshard = plan.reshards[r];
        Plan other = plan;
        other.reshards.erase(other.reshards.begin() + std::ptrdiff_t(r));
        if (!reshard.forward.empty()) must_fail(other, "a resharding is missing");
        other = plan;
        if (!reshard.forward.empty()) {
          other.reshards[r].forward.pop_back();
          must_fail(other, "a forward step is missing");
        }
        other = plan;
        if (!reshard.gradient.empty()) {
          other.reshards[r].gradient.pop_back();
          must_fail(other, "a backward step is missing");
        }
        other = plan;
        if (reshard.keep == Keep::after || reshard.keep == Keep::both) {
          other.reshards[r].keep = Keep::none;
          must_fail(other, "a kept copy is missing");
          other.reshards[r].keep = Keep::before;
          must_fail(other, "a resharding is not repeated");
        }
        for (std::size_t s = 0; s < reshard.forward.size(); ++s) {
          if (reshard.forward[s].move != ReshardMove::all_reduce) continue;
          other = plan;
          other.reshards[r].forward[s].move = ReshardMove::slice;
          // The sum that is not made: accepted as a step, but the numbers show it.
          const auto run = step::run_step(step::in_double(), *scenario->model, other, options);
          const auto whole = step::run_whole(step::in_double(), *scenario->model, other, options);
          QVERIFY(whole.has_value());
          if (!run.has_value()) continue;
          const auto compared = step::compare(*scenario->model, other, *run, *whole);
          QVERIFY(compared.has_value() && compared->largest() > 1e-3);
          ++tried;
        }
      }
      for (std::size_t i = 0; i < plan.operators.size(); ++i) {
        Plan other = plan;
        auto* steps = test::last_steps(other.operators[i]);
        if (!steps) continue;
        steps->push_back(steps->back());
        must_fail(other, "a gradient is summed twice");
        steps->resize(steps->size() - 2);
        must_fail(other, "a gradient is not summed");
      }
    }
    QVERIFY(tried > 50);
  }

  void one_wrong_number_is_seen() {
    const auto scenario = test::scenario_on(test::mlp(8), "v100-16gb-1x2");
    const Plan plan = test::hand_plan(*scenario, 1);
    const auto options = test::step_options(scenario->settings);
    auto run = step::run_step(step::in_double(), *scenario->model, plan, options);
    const auto whole = step::run_whole(step::in_double(), *scenario->model, plan, options);
    QVERIFY(run.has_value() && whole.has_value());
    for (auto& recorded : run->ranks.back().recorded) {
      const double right = recorded.data.front();
      recorded.data.front() += 1e-6;
      const auto compared = step::compare(*scenario->model, plan, *run, *whole);
      QVERIFY(compared.has_value() && compared->largest() > 1e-8);
      recorded.data.front() = std::nan("");
      QVERIFY(!(step::compare(*scenario->model, plan, *run, *whole)->largest() < 1));
      recorded.data.front() = right;
    }
    QVERIFY(step::compare(*scenario->model, plan, *run, *whole)->largest() < test::kRounding);
    const auto other =
        step::run_step(step::in_double(), *scenario->model, plan, test::step_options(scenario->settings, 2));
    QVERIFY(other.has_value() && step::compare(*scenario->model, plan, *other, *whole)->largest() > 1e-3);
  }
};

QTEST_APPLESS_MAIN(StepSmallTest)
#include "plan/parameter_edits.h"
#include "step_small_test.moc"
