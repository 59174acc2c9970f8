// SPDX-License-Identifier: Apache-2.0
// Lanes and liveness against a literal transcription of their rules, and cases that can be followed with a finger.
#include "core/simulation/lanes.h"

#include <QtTest>
#include <random>

#include "simulation/slow_lanes.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// Items are added in the order of issue.
struct Program {
  LaneItems items;
  explicit Program(std::uint32_t lanes) { items.lanes = lanes; }
  std::uint32_t add(std::uint32_t lane, double seconds, const std::vector<std::uint32_t>& waits = {},
                    const std::vector<std::uint32_t>& others = {}) {
    const std::uint32_t item = items.begin(lane, seconds);
    items.wait_for.insert(items.wait_for.end(), waits.begin(), waits.end());
    items.other.insert(items.other.end(), others.begin(), others.end());
    return item;
  }
  LaneItems finished() {
    items.finish();
    return items;
  }
};

/// Times are small whole numbers, so that many things happen at once.
LaneItems random_items(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return std::uint32_t(random() % n); };
  const std::uint32_t lanes = 1 + below(6), count = 1 + below(60);
  Program program(lanes);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<std::uint32_t> waits;
    for (std::uint32_t k = below(4); i > 0 && k > 0; --k) waits.push_back(below(i));
    const std::uint32_t kind = below(10);
    const std::uint32_t lane = kind == 0 ? kNone : below(lanes);
    std::vector<std::uint32_t> others;
    for (std::uint32_t other = 0; kind < 4 && lane != kNone && other < lanes; ++other)
      if (other != lane && below(3) == 0) others.push_back(other);
    program.add(lane, double(below(4)), waits, others);
  }
  if (below(2))
    for (char& yields : program.items.yields) yields = char(below(3) == 0);
  // By two, all instants stay exact.
  program.items.overlap_slowdown = below(2) ? 2 : 1;
  for (std::uint32_t i = 0; i < count; ++i) program.items.aside[i] = program.items.lane[i] % 3 != 0 && below(4) == 0;
  return program.finished();
}

}  // namespace

class LanesTest : public QObject {
  Q_OBJECT
 private slots:
  void a_lane_takes_what_was_ready_first();
  void at_one_instant_the_order_of_issue_decides();
  void those_that_yield_go_last();
  void two_lanes_meet();
  void an_exchange_holds_all_its_lanes();
  void computing_and_communicating_slow_each_other();
  void random_programs_follow_the_rules();
  void the_critical_path_has_no_holes();
  void of_equal_causes_the_first_is_critical();
  void a_peak_is_where_it_is_first_reached();
  void frees_come_before_allocations();
  void nothing_to_do();
};

// Gradients that wait for the network let a send go first that came later; what has begun is not interrupted.
void LanesTest::those_that_yield_go_last() {
  Program program(2);
  const auto first = program.add(0, 2), second = program.add(0, 2), third = program.add(0, 2);
  const auto computing = program.add(1, 1), send = program.add(0, 1, {computing});
  program.items.yields = {1, 1, 1, 0, 0};
  const LaneTimes times = run_lanes(program.finished());
  QCOMPARE(times.start_s[first], 0.0);
  QCOMPARE(times.start_s[send], 2.0);
  QCOMPARE(times.start_s[second], 3.0);
  QCOMPARE(times.start_s[third], 5.0);
}

void LanesTest::a_lane_takes_what_was_ready_first() {
  Program program(2);
  const auto a = program.add(0, 3);
  const auto late = program.add(1, 1, {a});  // ready at 3
  const auto b = program.add(1, 2);          // ready at 0, runs to 2
  const auto c = program.add(1, 4, {b});     // ready at 2, runs to 6
  const LaneTimes times = run_lanes(program.finished());
  QCOMPARE(times.start_s[b], 0.0);
  QCOMPARE(times.start_s[c], 2.0);
  QCOMPARE(times.start_s[late], 6.0);
  QCOMPARE(times.makespan_s, 7.0);
  QCOMPARE(times.run[1], (std::vector<std::uint32_t>{b, c, late}));
}

void LanesTest::at_one_instant_the_order_of_issue_decides() {
  Program program(3);
  const auto first = program.add(0, 1), second = program.add(1, 1);
  const auto x = program.add(2, 1, {second}), y = program.add(2, 1, {first});
  const LaneTimes times = run_lanes(program.finished());
  QCOMPARE(times.start_s[x], 1.0);
  QCOMPARE(times.start_s[y], 2.0);
}

void LanesTest::two_lanes_meet() {
  // A send over lanes 0 and 1 waits for both; what was ready on lane 1 after it stays behind it.
  Program program(2);
  const auto busy = program.add(1, 5);
  const auto send = program.add(0, 2, {}, {1});
  const auto behind = program.add(1, 1);
  const auto own = program.add(0, 1, {send});
  const LaneTimes times = run_lanes(program.finished());
  QCOMPARE(times.start_s[busy], 0.0);
  QCOMPARE(times.start_s[send], 5.0);
  QCOMPARE(times.start_s[behind], 7.0);
  QCOMPARE(times.start_s[own], 7.0);
}

// What three devices exchange begins once all are free, and keeps all of them.
void LanesTest::an_exchange_holds_all_its_lanes() {
  Program program(3);
  const auto early = program.add(0, 1), late = program.add(2, 4);
  const auto exchange = program.add(1, 2, {}, {0, 2});
  const auto on_first = program.add(0, 1), on_last = program.add(2, 1);
  const LaneItems items = program.finished();
  const LaneTimes times = run_lanes(items);
  QCOMPARE(times.end_s[early], 1.0);
  QCOMPARE(times.start_s[exchange], 4.0);
  QCOMPARE(times.start_s[on_first], 6.0);
  QCOMPARE(times.start_s[on_last], 6.0);
  const auto critical = critical_items(items, times);
  QCOMPARE(critical, (std::vector<std::uint32_t>{late, exchange, on_first}));
}

// By half: computing of 4 s beside a collective of 1 s. Both make half of a second in one, until the collective ends at
// 2 and 3 s of computing are left. What goes to the host, and what another role communicates, slows nothing.
void LanesTest::computing_and_communicating_slow_each_other() {
  for (const bool aside : {false, true}) {
    Program program(6);
    program.items.overlap_slowdown = 2;
    const auto computing = program.add(0, 4), collective = program.add(2, 1), elsewhere = program.add(4, 3);
    const auto after = program.add(1, 2, {computing});
    program.items.aside = {0, aside, 0, 0};
    const LaneTimes times = run_lanes(program.finished());
    QCOMPARE(times.end_s[collective], aside ? 1.0 : 2.0);
    QCOMPARE(times.end_s[computing], aside ? 4.0 : 5.0);
    QCOMPARE(times.end_s[elsewhere], 3.0);
    QCOMPARE(times.end_s[after], times.end_s[computing] + 2);
  }
  // An exchange of two roles is slowed by either; only the one that computes is.
  Program program(6);
  program.items.overlap_slowdown = 2;
  const auto computing = program.add(3, 1), exchange = program.add(1, 2, {}, {4}), alone = program.add(0, 0);
  const LaneTimes times = run_lanes(program.finished());
  QCOMPARE(times.end_s[alone], 0.0);
  QCOMPARE(times.end_s[computing], 2.0);
  QCOMPARE(times.end_s[exchange], 3.0);
}

void LanesTest::random_programs_follow_the_rules() {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    const LaneItems items = random_items(random);
    const LaneTimes times = run_lanes(items);
    const SlowLanes slow = slow_lanes(items);
    for (std::size_t i = 0; i < items.size(); ++i)
      QVERIFY2(
          times.start_s[i] == slow.start[i] && times.end_s[i] == slow.end[i],
          qPrintable(
              QString("round %1, item %2: %3 against %4").arg(round).arg(i).arg(times.start_s[i]).arg(slow.start[i])));
    double sum = 0;
    for (const double seconds : items.duration_s) sum += seconds;
    QVERIFY(times.makespan_s <= sum * items.overlap_slowdown);
    // Buffers made by random items and read by random later ones.
    Buffers buffers;
    for (int b = 0; b < 30; ++b) {
      const auto made = std::uint32_t(random() % items.size());
      const std::uint32_t id =
          buffers.add(std::int64_t(random() % 100), BufferKind(random() % 3), made, std::uint32_t(random() % 2));
      for (std::uint64_t k = random() % 3; k > 0; --k) {
        const auto reader = std::uint32_t(random() % items.size());
        if (times.end_s[reader] >= times.start_s[made]) buffers.read(id, reader);
      }
    }
    const auto memory = memory_over_time(buffers, times, {1000, 50}, true);
    for (std::uint32_t d = 0; d < 2; ++d) {
      const std::int64_t persistent = d == 0 ? 1000 : 50;
      QCOMPARE(memory[d].peak_bytes, slow_peak(buffers, slow, persistent, d));
      std::int64_t highest = persistent;
      for (const MemorySample& sample : memory[d].samples)
        highest = std::max(highest, persistent + sample.activation_bytes + sample.copy_bytes + sample.workspace_bytes);
      QCOMPARE(highest, memory[d].peak_bytes);
      QCOMPARE(memory[d].samples.front().time_s, 0.0);
    }
  }
}

void LanesTest::the_critical_path_has_no_holes() {
  std::mt19937_64 random(11);
  for (int round = 0; round < 500; ++round) {
    const LaneItems items = random_items(random);
    const LaneTimes times = run_lanes(items);
    double at = 0;
    for (const std::uint32_t item : critical_items(items, times)) {
      QCOMPARE(times.start_s[item], at);
      at = times.end_s[item];
    }
    QCOMPARE(at, times.makespan_s);
  }
}

void LanesTest::of_equal_causes_the_first_is_critical() {
  // In both orders of waiting: neither the one that is named first nor the one named last is meant.
  for (const bool turned : {false, true}) {
    Program program(3);
    const auto a = program.add(0, 2), b = program.add(1, 2);
    const auto both = program.add(2, 1, turned ? std::vector{b, a} : std::vector{a, b});
    const LaneItems items = program.finished();
    QCOMPARE(critical_items(items, run_lanes(items)), (std::vector<std::uint32_t>{a, both}));
  }
}

void LanesTest::a_peak_is_where_it_is_first_reached() {
  Program program(1);
  const auto a = program.add(0, 1), b = program.add(0, 1, {a}), c = program.add(0, 1, {b});
  Buffers buffers;
  buffers.add(10, BufferKind::activation, a, 0);
  buffers.add(70, BufferKind::workspace, b, 0);
  buffers.add(70, BufferKind::copy, c, 0);
  const auto memory = memory_over_time(buffers, run_lanes(program.finished()), {0}, false);
  QCOMPARE(memory[0].peak_bytes, 70);
  QCOMPARE(memory[0].peak_at_s, 1.0);
}

void LanesTest::frees_come_before_allocations() {
  Program program(1);
  const auto a = program.add(0, 1), b = program.add(0, 1, {a}), none = program.add(0, 0, {b});
  Buffers buffers;
  buffers.add(100, BufferKind::activation, a, 0);
  buffers.add(70, BufferKind::copy, b, 0);
  buffers.add(5000, BufferKind::workspace, none, 0);  // begins and ends in one instant
  const auto memory = memory_over_time(buffers, run_lanes(program.finished()), {3}, true);
  QCOMPARE(memory[0].peak_bytes, 103);
  QCOMPARE(memory[0].peak_at_s, 0.0);
  QCOMPARE(memory[0].samples.size(), std::size_t(3));
  QCOMPARE(memory[0].samples[1].copy_bytes, 70);
  QCOMPARE(memory[0].samples[2].copy_bytes, 0);
}

void LanesTest::nothing_to_do() {
  Program program(2);
  const LaneTimes times = run_lanes(program.finished());
  QCOMPARE(times.makespan_s, 0.0);
  QCOMPARE(times.run.size(), std::size_t(2));
  QVERIFY(critical_items(program.items, times).empty());
  QCOMPARE(memory_over_time({}, times, {42}, false)[0].peak_bytes, 42);
}

QTEST_APPLESS_MAIN(LanesTest)
#include "lanes_test.moc"
