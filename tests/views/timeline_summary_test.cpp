// SPDX-License-Identifier: Apache-2.0
// What timeline and memory draw from, against direct computation over all items and samples; and the time axis.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <random>

#include "core/schedule/plan_schedule.h"
#include "search/scenarios.h"
#include "views/memory/memory_summary.h"
#include "views/schedule_fixture.h"
#include "views/time/time_axis.h"
#include "views/timeline/timeline_summary.h"
#include "views/timeline/timeline_words.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

std::vector<SchedulePtr> schedules() {
  using fixture::Placing;
  fixture::PipelineOptions free;
  free.contention = TaskLinks::Contention::none;
  return {fixture::pipeline(),
          fixture::pipeline(free),
          fixture::layered(3000, 4, Placing::lanes),
          fixture::layered(3000, 16, Placing::scattered),
          fixture::layered(2000, 5, Placing::scattered, TaskLinks::Contention::none),
          fixture::plain(37, 1e-3),
          fixture::plain(1, 2.0),
          fixture::plain(4, 0)};
}

double overlap(double a, double b, double from, double to) {
  return std::max(0.0, std::min(b, to) - std::max(a, from));
}

}  // namespace

class TimelineSummaryTest : public QObject {
  Q_OBJECT
 private slots:
  void tracks_hold_every_item_once_without_overlap() {
    for (const SchedulePtr& s : schedules()) {
      const auto summary = TimelineSummary::make(s);
      std::vector<int> seen(s->item_count(), 0);
      QCOMPARE(summary->lanes().size(), s->lanes.size());
      for (std::size_t l = 0; l < s->lanes.size(); ++l) {
        const auto& lane = summary->lanes()[l];
        for (std::uint32_t t = lane.first_track; t < lane.first_track + lane.tracks; ++t) {
          const auto track = summary->track(t);
          for (std::uint32_t place = track.begin; place < track.end; ++place) {
            const std::uint32_t item = summary->item_at(place);
            ++seen[item];
            QCOMPARE(summary->place_of(item), place);
            QCOMPARE(summary->lane_of(item), std::uint32_t(l));
            QVERIFY(item >= s->lanes[l].begin && item < s->lanes[l].end);
            if (place > track.begin) QVERIFY(s->start_s[item] >= s->start_s[summary->item_at(place - 1)]);
            if (place > track.begin && lane.density == kNone)
              QVERIFY(s->start_s[item] >= s->end_s[summary->item_at(place - 1)]);
          }
        }
      }
      QVERIFY(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
    }
  }

  void both_ways_of_drawing_overlap_occur() {
    bool packed = false, dense = false;
    for (const SchedulePtr& s : schedules()) {
      const auto summary = TimelineSummary::make(s);
      for (const auto& lane : summary->lanes()) {
        packed |= lane.tracks > 1;
        dense |= lane.density != kNone;
      }
    }
    QVERIFY(packed);
    QVERIFY(dense);
  }

  void columns_equal_direct_sums() {
    std::mt19937 random(3);
    for (const SchedulePtr& s : schedules()) {
      const auto summary = TimelineSummary::make(s);
      const double makespan = s->makespan_s > 0 ? s->makespan_s : 1;
      for (const double span : {makespan * 1.04, makespan, makespan / 7, makespan / 900, makespan / 1e5}) {
        const double from = std::uniform_real_distribution<>(-0.02 * span, std::max(makespan - span, 0.0))(random);
        const int columns = 53;
        for (const auto& lane : summary->lanes()) {
          if (lane.density != kNone) continue;
          for (std::uint32_t t = lane.first_track; t < lane.first_track + lane.tracks; ++t) {
            for (const auto color : {TimelineColor::kind, TimelineColor::layer, TimelineColor::duration}) {
              const auto track = summary->track(t);
              TrackWalk walk(*summary, track, color, from);
              for (int x = 0; x < columns; ++x) {
                const double low = from + x * span / columns, high = from + (x + 1) * span / columns;
                ClassSums::Sums sums{}, direct{};
                walk.column(low, high, sums);
                for (std::uint32_t place = track.begin; place < track.end; ++place)
                  direct[summary->classes(color)[place]] +=
                      overlap(summary->start_s()[place], summary->end_s()[place], low, high);
                for (std::size_t c = 0; c < kColorClasses; ++c)
                  QVERIFY2(std::abs(sums[c] - direct[c]) <= 1e-12 * makespan, "a column's share differs");
                if (walk.alone() != kNone) {
                  QVERIFY(summary->start_s()[walk.alone()] <= low && summary->end_s()[walk.alone()] >= high);
                }
              }
            }
          }
        }
      }
    }
  }

  void density_equals_direct_integral() {
    const auto s = fixture::layered(2000, 5, fixture::Placing::scattered, TaskLinks::Contention::none);
    const auto summary = TimelineSummary::make(s);
    int lanes = 0;
    for (const auto& lane : summary->lanes()) {
      if (lane.density == kNone) continue;
      ++lanes;
      const auto track = summary->track(lane.first_track);
      std::uint32_t most = 0;
      for (int x = 0; x < 200; ++x) {
        const double low = s->makespan_s * x / 200, high = s->makespan_s * (x + 1) / 200;
        double direct = 0;
        std::vector<std::uint32_t> running;
        for (std::uint32_t place = track.begin; place < track.end; ++place) {
          direct += overlap(summary->start_s()[place], summary->end_s()[place], low, high);
          if (summary->start_s()[place] <= low && summary->end_s()[place] > low) running.push_back(place);
        }
        QVERIFY(std::abs(summary->mean_running(lane, low, high) - direct / (high - low)) < 1e-6);
        QVERIFY(summary->running_at(lane, low) == running);
        most = std::max(most, std::uint32_t(running.size()));
      }
      QVERIFY(most <= lane.depth);
      for (const double span : {s->makespan_s * 1.1, s->makespan_s / 30, s->makespan_s / 1e4}) {
        std::vector<float> columns(97);
        const double from = s->makespan_s * 0.37 - span * 0.4, step = span / 97;
        summary->mean_running(lane, from, step, columns);
        for (std::size_t x = 0; x < columns.size(); ++x)
          QVERIFY(std::abs(double(columns[x]) -
                           summary->mean_running(lane, from + double(x) * step, from + double(x + 1) * step)) < 1e-4);
      }
      // The depth is reached where an item begins.
      std::uint32_t depth = 0;
      for (std::uint32_t place = track.begin; place < track.end; ++place)
        depth = std::max(depth, std::uint32_t(summary->running_at(lane, summary->start_s()[place]).size()));
      QCOMPARE(lane.depth, depth);
    }
    QVERIFY(lanes > 0);
  }

  void busy_time_and_overview_add_up() {
    for (const SchedulePtr& s : schedules()) {
      const auto summary = TimelineSummary::make(s);
      double computing = 0, lanes = 0;
      for (std::size_t l = 0; l < s->lanes.size(); ++l) {
        const auto& lane = summary->lanes()[l];
        if (lane.depth == 1) QVERIFY(std::abs(lane.busy_s - s->lanes[l].busy_s) <= 1e-9 * s->makespan_s);
        QVERIFY(lane.busy_s <= s->lanes[l].busy_s + 1e-9 && lane.busy_s <= s->makespan_s * (1 + 1e-9));
        if (lane.kind == LaneKind::compute) computing += lane.busy_s, lanes += 1;
      }
      double drawn = 0;
      for (const float share : summary->overview_compute()) drawn += double(share);
      const double share = s->makespan_s > 0 ? computing / (lanes * s->makespan_s) : 0;
      QVERIFY(std::abs(drawn / double(TimelineSummary::kOverviewBins) - share) < 1e-5);
      QVERIFY(std::abs(summary->busy_share() - share) < 1e-9);
    }
  }

  void items_of_a_task_are_itself_and_its_transfers() {
    const auto s = fixture::layered(3000, 16, fixture::Placing::scattered);
    const auto summary = TimelineSummary::make(s);
    std::vector<std::vector<std::uint32_t>> direct(s->graph->task_count());
    for (TaskIndex t = 0; t < direct.size(); ++t) direct[t].push_back(s->item_of[t]);
    for (std::uint32_t i = 0; i < s->item_count(); ++i)
      if (s->is_transfer(i)) direct[s->task[i]].push_back(i);
    for (TaskIndex t = 0; t < direct.size(); ++t) QVERIFY(summary->items_of(t) == direct[t]);
  }

  void layers_are_what_tells_scopes_apart() {
    fixture::PipelineOptions few;
    few.layers = 6, few.prefix = "model/decoder/block";
    const auto named = TimelineSummary::make(fixture::pipeline(few));
    QCOMPARE(named->layer_count(), std::size_t(6));
    QVERIFY(!named->layers_repeat());
    QVERIFY(std::find(named->layer_names().begin(), named->layer_names().end(), QStringLiteral("block3")) !=
            named->layer_names().end());
    QVERIFY(TimelineSummary::make(fixture::pipeline())->layers_repeat());
  }

  void communication_is_coloured_by_its_move() {
    const auto scenario = test::scenario_on(test::builtin("gpt2?layers=2&hidden=128&sequence=16", 8), "v100-16gb-1x4");
    const auto result = test::run("manual:tp=2:pp=2:micro-batches=2", scenario);
    QVERIFY(result.has_value());
    const auto s = plan_schedule(*scenario, (*result)->plans->sharding(0));
    QVERIFY(s.has_value());
    const auto summary = TimelineSummary::make(*s);
    const ClassSums& kinds = summary->classes(TimelineColor::kind);
    int all_reduces = 0, sends = 0;
    for (std::uint32_t i = 0; i < (*s)->item_count(); ++i) {
      const QString name = to_qt((*s)->graph->names[(*s)->task[i]]);
      const std::uint8_t which = kinds[summary->place_of(i)];
      if ((*s)->lanes[summary->lane_of(i)].kind == LaneKind::compute) QVERIFY(which < 4);
      if (name.contains(QStringLiteral(": all-reduce "))) {
        QCOMPARE(which, std::uint8_t(kMoveClass));
        ++all_reduces;
      } else if (name.contains(QStringLiteral("send to the next stage"))) {
        QCOMPARE(which, std::uint8_t(kCollectiveClass));
        ++sends;
      }
    }
    QVERIFY(all_reduces > 0 && sends > 0);
    // A path may go through tasks that are in no lane; what is drawn of it is in one.
    for (const std::uint32_t item : summary->path()) QVERIFY(item < (*s)->item_count());
    QVERIFY(!summary->path().empty());
  }

  void search_finds_by_part_of_a_name() {
    const auto summary = TimelineSummary::make(fixture::pipeline());
    const auto found = find_tasks(*summary, QStringLiteral("ATTENTION:mb2"), 100);
    QCOMPARE(found.size(), std::size_t(12));
    const Schedule& s = *summary->schedule();
    for (std::size_t i = 0; i < found.size(); ++i) {
      QVERIFY(to_qt(s.graph->names[found[i]]).contains(QStringLiteral("attention:mb2")));
      if (i > 0) QVERIFY(s.start_s[s.item_of[found[i]]] >= s.start_s[s.item_of[found[i - 1]]]);
    }
    QVERIFY(find_tasks(*summary, QStringLiteral("  "), 100).empty());
    QVERIFY(find_tasks(*summary, QStringLiteral("nothing like it"), 100).empty());
  }

  void fullest_sample_equals_a_scan() {
    std::mt19937 random(5);
    for (const SchedulePtr& s : schedules()) {
      const auto summary = MemorySummary::make(s);
      for (std::uint32_t d = 0; d < summary->devices(); ++d) {
        const auto& samples = summary->samples(d);
        if (samples.empty()) continue;
        for (int trial = 0; trial < 200; ++trial) {
          const double span = s->makespan_s * std::pow(10, -std::uniform_real_distribution<>(0, 5)(random));
          const double from = std::uniform_real_distribution<>(0, std::max(s->makespan_s - span, 1e-300))(random);
          std::size_t best = samples.size();
          for (std::size_t i = 0; i < samples.size(); ++i) {
            const double begin = samples[i].time_s, end = i + 1 < samples.size() ? samples[i + 1].time_s : INFINITY;
            if (begin >= from + span || end <= from) continue;
            if (best == samples.size() || s->total_at(d, samples[i]) > s->total_at(d, samples[best])) best = i;
          }
          QCOMPARE(summary->fullest(d, from, from + span), best);
          QCOMPARE(summary->total(d, best), s->total_at(d, samples[best]));
        }
        // The whole makespan's fullest sample is the simulator's peak.
        QCOMPARE(summary->total(d, summary->fullest(d, 0, s->makespan_s)), s->devices[d].peak_bytes);
      }
    }
  }

  void live_tensors_add_up_to_what_was_recorded() {
    for (const SchedulePtr& s : schedules()) {
      const auto summary = MemorySummary::make(s);
      int looked = 0;
      for (std::uint32_t d = 0; d < summary->devices(); ++d) {
        const auto& samples = summary->samples(d);
        for (std::size_t i = 0; i < samples.size(); i += 1 + samples.size() / 60) {
          const auto live = summary->live_at(d, samples[i].time_s, 10);
          QVERIFY2(live.has_value(), "tensors do not add up to the recorded bytes");
          QVERIFY(live->largest.size() <= 10 && live->largest.size() <= live->count);
          QVERIFY(std::is_sorted(live->largest.begin(), live->largest.end(),
                                 [](const LiveTensor& a, const LiveTensor& b) { return a.bytes > b.bytes; }));
          ++looked;
        }
      }
      if (s->makespan_s > 0) QVERIFY(looked > 0);
    }
  }

  void time_over_the_limit_is_found() {
    fixture::PipelineOptions tight;
    tight.limit = std::int64_t(4) << 30;
    const auto s = fixture::pipeline(tight);
    const auto summary = MemorySummary::make(s);
    QCOMPARE(summary->devices_over(), std::size_t(4));
    for (std::uint32_t d = 0; d < summary->devices(); ++d) {
      const auto first = summary->first_over(d);
      QVERIFY(first.has_value());
      QVERIFY(summary->total(d, summary->at(d, *first)) > tight.limit);
      const auto before = summary->at(d, *first) - 1;
      QVERIFY(summary->total(d, before) <= tight.limit);
    }
    QCOMPARE(MemorySummary::make(fixture::pipeline())->devices_over(), std::size_t(0));
  }

  void nothing_is_nothing() {
    QVERIFY(TimelineSummary::make(nullptr) == nullptr);
    QVERIFY(MemorySummary::make(nullptr) == nullptr);
    auto empty = std::make_shared<Schedule>();
    TaskGraphBuilder builder;
    TaskGraphBuilder::Task task;
    task.name = "t";
    builder.add_task(task);
    empty->graph = *builder.finish("one");
    empty->item_of = {kNone};
    empty->device_of = {0};
    const auto lanes = TimelineSummary::make(empty);
    QCOMPARE(lanes->lanes().size(), std::size_t(0));
    QVERIFY(lanes->items_of(0).empty());
    QVERIFY(!MemorySummary::make(empty)->recorded());
  }

  void time_view_keeps_its_bounds() {
    TimeView view;
    view.set_makespan(2.0);
    QVERIFY(view.fitted());
    QCOMPARE(view.to(), 2.0);
    // What lies under the pointer stays there.
    view.zoom(4, 0.5);
    QVERIFY(!view.fitted());
    QVERIFY(std::abs(view.from() - 0.375) < 1e-12 && std::abs(view.to() - 0.875) < 1e-12);
    for (int i = 0; i < 400; ++i) view.zoom(1.25, 0.6123);
    QVERIFY(view.to() - view.from() >= view.least_span() * (1 - 1e-9) && view.from() < 0.6123 && view.to() > 0.6123);
    for (int i = 0; i < 800; ++i) view.zoom(1 / 1.25, 0.6123);
    QVERIFY(view.to() - view.from() <= 2.0 * 1.05 && view.from() <= 0 && view.to() >= 2.0);
    view.show(1.0, 1.1);
    view.pan(-100);
    QVERIFY(view.from() > -0.01 && view.from() <= 0);
    view.pan(100);
    QVERIFY(view.to() >= 2.0 && view.to() < 2.01);
    QVERIFY(view.reveal(0.2, 0.21));
    QVERIFY(view.from() <= 0.2 && view.to() >= 0.21);
    QVERIFY(!view.reveal(0.2, 0.21));
    view.reveal(0.1, 1.9);
    QVERIFY(view.from() <= 0.1 && view.to() >= 1.9);
    view.set_makespan(0);
    view.zoom(3, 0.2);
    QCOMPARE(view.from(), 0.0);
    view.set_makespan(NAN);
    QCOMPARE(view.makespan(), 0.0);
  }

  void ticks_are_round_and_readable() {
    for (const double span : {1e-11, 3.3e-9, 1.2e-6, 4e-5, 0.0017, 0.081, 0.9, 7.0, 42.0, 8000.0})
      for (const double from : {0.0, 0.4012345678 * span, 1e3 * span, 812.345 * std::max(span, 1e-6)}) {
        const TimeWindow window{from, from + span, 100, 1000};
        const TimeTicks ticks = time_ticks(window, 80);
        QVERIFY(ticks.count >= 2 && ticks.count <= 13);
        for (int i = 0; i < ticks.count; ++i) {
          QVERIFY(ticks.at(i) >= from - 1e-6 * span && ticks.at(i) <= from + span * (1 + 1e-6));
          QVERIFY2(ticks.label(i).size() <= 14, qPrintable(ticks.label(i)));
          if (i > 0) QVERIFY2(ticks.label(i) != ticks.label(i - 1), qPrintable(ticks.label(i)));
        }
      }
    const TimeTicks plain = time_ticks({0, 0.8, 0, 800}, 80);
    QCOMPARE(plain.label(1), QStringLiteral("100"));
    QVERIFY(plain.label(0).endsWith(QStringLiteral("ms")));
    QVERIFY(!time_ticks({812.0, 812.0 + 1e-6, 0, 800}, 80).base_text.isEmpty());
  }
};

QTEST_MAIN(TimelineSummaryTest)
#include "timeline_summary_test.moc"
