// SPDX-License-Identifier: Apache-2.0
// 1F1B against its closed form, against a slow simulation written differently, and stage balancing against all cuts.
#include <QtTest>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "core/plan/pipeline_order.h"
#include "core/search/baselines/pipeline.h"
#include "core/search/baselines/pipeline_schedule.h"

using namespace turnpoint::search;

namespace {

struct Task {
  bool forward = true;
  int micro = 0;
};

// Each stage's list of tasks written out, then time is advanced instant by instant: a free stage begins the next task
// of its list if that task's input has arrived.
std::vector<double> simulate(const std::vector<StageTimes>& stages, int m, std::vector<int>* most_held = nullptr) {
  const int p = static_cast<int>(stages.size());
  std::vector<std::vector<Task>> lists(stages.size());
  for (int s = 0; s < p; ++s) {
    auto& list = lists[static_cast<std::size_t>(s)];
    const int warm = std::min(p - 1 - s, m);
    int f = 0, b = 0;
    while (f < warm) list.push_back({true, f++});
    while (f < m) list.push_back({true, f++}), list.push_back({false, b++});
    while (b < m) list.push_back({false, b++});
  }
  const double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> done_f(stages.size(), std::vector<double>(static_cast<std::size_t>(m), never)),
      done_b = done_f;
  std::vector<std::size_t> next(stages.size(), 0);
  std::vector<double> busy_until(stages.size(), 0);
  std::vector<int> held(stages.size(), 0);
  if (most_held) most_held->assign(stages.size(), 0);
  double now = 0;
  for (;;) {
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < p; ++s) {
        const auto i = static_cast<std::size_t>(s);
        if (busy_until[i] > now || next[i] == lists[i].size()) continue;
        const Task task = lists[i][next[i]];
        const auto j = static_cast<std::size_t>(task.micro);
        const double ready =
            task.forward ? (s == 0 ? 0 : done_f[i - 1][j]) : std::max(done_f[i][j], s == p - 1 ? 0 : done_b[i + 1][j]);
        if (ready > now) continue;
        busy_until[i] = now + (task.forward ? stages[i].forward : stages[i].backward);
        (task.forward ? done_f : done_b)[i][j] = busy_until[i];
        held[i] += task.forward ? 1 : -1;
        if (most_held) (*most_held)[i] = std::max((*most_held)[i], held[i]);
        ++next[i];
        moved = true;
      }
    }
    double later = never;
    for (std::size_t i = 0; i < stages.size(); ++i)
      if (busy_until[i] > now) later = std::min(later, busy_until[i]);
    if (later == never) break;
    now = later;
  }
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (next[i] != lists[i].size()) qFatal("the simulation is stuck");
  return busy_until;
}

}  // namespace

class PipelineScheduleTest : public QObject {
  Q_OBJECT

  // Every run sees every micro-batch once in each direction, backward behind forward, in the same order of batches.
  static void check_order(const std::vector<turnpoint::PipelineStep>& order, int chunks, int m) {
    QCOMPARE(int(order.size()), 2 * chunks * m);
    std::vector<int> forwards(static_cast<std::size_t>(chunks), 0), backwards = forwards;
    for (const turnpoint::PipelineStep& step : order) {
      int& next = (step.forward ? forwards : backwards)[static_cast<std::size_t>(step.chunk)];
      QCOMPARE(step.batch, next++);
      QVERIFY(step.forward || forwards[static_cast<std::size_t>(step.chunk)] > step.batch);
    }
  }

 private slots:
  void equal_stages_follow_the_closed_form() {
    for (int p = 1; p <= 9; ++p)
      for (int m = 1; m <= 20; ++m) {
        const std::vector<StageTimes> stages(static_cast<std::size_t>(p), {1.0, 2.0});
        const auto ends = ends_of_passes(stages, m);
        QCOMPARE(*std::max_element(ends.begin(), ends.end()), (m + p - 1) * 3.0);
        QCOMPARE(ends.front(), (m + p - 1) * 3.0);  // the first stage ends last
      }
  }

  void unequal_stages_follow_the_simulation() {
    std::mt19937_64 random(3);
    for (int trial = 0; trial < 500; ++trial) {
      const int p = 1 + static_cast<int>(random() % 7), m = 1 + static_cast<int>(random() % 12);
      std::vector<StageTimes> stages;
      for (int s = 0; s < p; ++s)
        stages.push_back({double(1 + random() % 50) / 8, double(1 + random() % 90) / 8});  // exact in binary
      std::vector<int> held;
      const auto expected = simulate(stages, m, &held);
      const auto ends = ends_of_passes(stages, m);
      QCOMPARE(ends.size(), expected.size());
      for (int s = 0; s < p; ++s) {
        QCOMPARE(ends[static_cast<std::size_t>(s)], expected[static_cast<std::size_t>(s)]);
        const std::int64_t one[] = {1};
        QCOMPARE(turnpoint::most_in_flight(turnpoint::pipeline_order(s, p, 1, m), one), std::vector<int>{held[static_cast<std::size_t>(s)]});
      }
    }
  }

  // GPipe takes as long as 1F1B on equal stages, and holds all micro-batches: stages end their forwards at (m + s) f
  // and wait for the last one's backward. With v runs of f and b each it takes as long as interleaved 1F1B.
  void all_forwards_first_take_as_long_and_hold_all() {
    for (int p = 2; p <= 6; ++p)
      for (int v = 1; v <= 3; ++v)
        for (int m = p; m <= 3 * p; m += p) {
          const std::vector<StageTimes> runs(static_cast<std::size_t>(p * v), {1.0, 2.0});
          const auto ends = ends_of_passes(runs, m, v, true);
          QCOMPARE(ends.front(), (m * v + p - 1) * 3.0);
          QCOMPARE(ends.back(), (m * v + p - 1) * 1.0 + m * v * 2.0);
          for (int s = 0; s < p; ++s) {
            const auto order = turnpoint::pipeline_order(s, p, v, m, true);
            check_order(order, v, m);
            const std::vector<std::int64_t> equal(static_cast<std::size_t>(v), 1);
            QCOMPARE(turnpoint::most_in_flight(order, equal), std::vector<int>(static_cast<std::size_t>(v), m));
            for (int i = 0; i < v * m; ++i)
              QVERIFY(order[static_cast<std::size_t>(i)] == (turnpoint::PipelineStep{true, i / m, i % m}));
            QVERIFY(order[static_cast<std::size_t>(v * m)] == (turnpoint::PipelineStep{false, v - 1, 0}));
          }
        }
  }

  // Narayanan et al. 2021, section 2.2.2: v runs on every stage divide the bubble by v, and the first stage holds p - 1
  // more of them than v p.
  void interleaved_stages_wait_less() {
    for (int p = 2; p <= 8; ++p)
      for (int v = 1; v <= 4; ++v)
        for (int rounds = 1; rounds <= 4; ++rounds) {
          const int m = rounds * p;
          const std::vector<StageTimes> runs(static_cast<std::size_t>(p * v), {1.0, 2.0});
          const auto ends = ends_of_passes(runs, m, v);
          QCOMPARE(ends.front(), (m * v + p - 1) * 3.0);
          for (int s = 0; s < p; ++s) {
            const auto order = turnpoint::pipeline_order(s, p, v, m);
            const std::vector<std::int64_t> equal(static_cast<std::size_t>(v), 1);
            const auto most = turnpoint::most_in_flight(order, equal);
            const int warm_up = v == 1 ? p - 1 - s : 2 * (p - 1 - s) + (v - 1) * p;
            QCOMPARE(std::accumulate(most.begin(), most.end(), 0), std::min(m * v, warm_up + 1));
            check_order(order, v, m);
          }
        }
  }

  void cuts_count_layers() {
    QCOMPARE(equal_stages(8, 4), (std::vector<int>{0, 2, 4, 6}));
    QCOMPARE(equal_stages(126, 16).at(1), 7);  // embedding and head count as layers
    QCOMPARE(equal_stages(126, 16).at(2), 15);
    QVERIFY(equal_stages(7, 2).empty());
    QVERIFY(equal_stages(2, 4).empty());
  }

  void cuts_are_the_best_of_all() {
    std::mt19937_64 random(5);
    for (int trial = 0; trial < 300; ++trial) {
      const int n = 1 + static_cast<int>(random() % 9), p = 1 + static_cast<int>(random() % static_cast<unsigned>(n));
      std::vector<double> times;
      for (int i = 0; i < n; ++i) times.push_back(double(1 + random() % 20));
      const auto largest = [&](const std::vector<int>& first) {
        double most = 0;
        for (int s = 0; s < p; ++s) {
          double sum = 0;
          const int end = s + 1 < p ? first[static_cast<std::size_t>(s + 1)] : n;
          for (int i = first[static_cast<std::size_t>(s)]; i < end; ++i) sum += times[static_cast<std::size_t>(i)];
          most = std::max(most, sum);
        }
        return most;
      };
      double best = std::numeric_limits<double>::infinity();
      std::vector<int> first(1, 0);
      const std::function<void(int)> cut = [&](int s) {
        if (s == p) {
          best = std::min(best, largest(first));
          return;
        }
        for (int i = first.back() + 1; i <= n - (p - s); ++i) {
          first.push_back(i);
          cut(s + 1);
          first.pop_back();
        }
      };
      cut(1);
      const auto found = balanced_stages(times, p);
      QCOMPARE(found.front(), 0);
      for (std::size_t s = 1; s < found.size(); ++s) QVERIFY(found[s] > found[s - 1] && found[s] < n);
      QCOMPARE(largest(found), best);
    }
  }
};

QTEST_APPLESS_MAIN(PipelineScheduleTest)
#include "pipeline_schedule_test.moc"
