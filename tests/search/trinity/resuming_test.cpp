// SPDX-License-Identifier: Apache-2.0
// Learning that goes on from a state ends where it would have ended without a break, bit for bit; a state of something
// else is refused in one sentence.
#include <QtTest>

#include <functional>

#include "core/plan/learning.h"
#include "core/search/placement_registry.h"
#include "core/search/trinity/saved_state.h"
#include "core/search/trinity/trainer.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::test;
using namespace turnpoint::trinity;

namespace {

Settings quick(std::uint64_t iterations) {
  Settings settings;
  settings.budget.iterations = iterations;
  settings.hidden = 24;
  settings.rollouts = 6;
  settings.teaching = 20;
  settings.refined_every = 18;  // after every third iteration
  settings.state_every_s = 0;   // after every iteration
  return settings;
}

placement::PlacementRequest three_devices(std::shared_ptr<const std::string> resume = nullptr) {
  placement::PlacementRequest request;
  request.devices = 3;
  request.seed = 5;
  request.resume = std::move(resume);
  return request;
}

/// Remembers what the trainer shows, and asks for a stop after some iterations; 0: never.
struct Watched {
  explicit Watched(std::uint64_t stop_after = 0, int threads = 1) {
    context.stop = stop.get_token();
    context.threads = threads;
    context.progress = [this, stop_after](const Progress& progress) {
      if (auto shown = std::dynamic_pointer_cast<const Learning>(progress.detail)) learning = shown;
      if (stop_after > 0 && progress.phase.starts_with(fmt::format("iteration {},", stop_after))) stop.request_stop();
    };
  }
  std::stop_source stop;
  std::shared_ptr<const Learning> learning;
  RunContext context;
};

void check_same(const Learnt& a, const Learnt& b) {
  QCOMPARE(a.best.placement.device, b.best.placement.device);
  QCOMPARE(a.best.placement.order, b.best.placement.order);
  QCOMPARE(a.best.seconds, b.best.seconds);
  QCOMPARE(a.iterations, b.iterations);
  QCOMPARE(a.calls, b.calls);
  QCOMPARE(a.reward_first, b.reward_first);
  QCOMPARE(a.reward_last, b.reward_last);
  QCOMPARE(a.begun.has_value(), b.begun.has_value());
}

/// Networks, optimizers and all the rest, to the last bit; but for the clock's time.
void check_same_state(const std::string& a, const std::string& b) {
  auto one = read_saved_state(a), other = read_saved_state(b);
  QVERIFY(one && other);
  one->seconds = other->seconds = 0;
  QVERIFY(write_saved_state(*one) == write_saved_state(*other));
}

Expected<SimulatedPlacement> placed(const TaskGraph& graph, std::shared_ptr<const std::string> resume,
                                    const RunContext& context, const std::string& parameters) {
  return placement::run_placement(**placement::find_placement_method("trinity"), graph, three_devices(resume), context,
                                  parameters);
}

}  // namespace

class ResumingTest : public QObject {
  Q_OBJECT

 private slots:
  /// From nothing and from a placement, broken off wherever, on other numbers of threads.
  void it_ends_as_without_a_break() {
    const auto graph = random_task_graph(5, 40);
    const auto heft = placement::run_placement(**placement::find_placement_method("heft"), *graph, three_devices(), {});
    for (const bool from_nothing : {true, false}) {
      const Beginning begin =
          from_nothing ? Beginning(nullptr) : Beginning(&heft->placement, {"HEFT", heft->makespan_s});
      Watched whole;
      const auto all = learn(*graph, three_devices(), quick(12), begin, whole.context);
      QVERIFY(all && !all->stopped);
      for (const std::uint64_t after : {1, 5, 11}) {
        Watched first(after, 2);
        const auto part = learn(*graph, three_devices(), quick(12), begin, first.context);
        QVERIFY(part && part->stopped);
        QVERIFY(first.learning && first.learning->state());
        Watched second;
        const auto rest =
            learn(*graph, three_devices(first.learning->state()), quick(12), Beginning(nullptr), second.context);
        QVERIFY2(rest, rest ? "" : rest.error().what.c_str());
        check_same(*rest, *all);
        check_same_state(*second.learning->state(), *whole.learning->state());
        QCOMPARE(second.learning->points(), whole.learning->points());
        QCOMPARE(second.learning->begun_s(), whole.learning->begun_s());
        if (QTest::currentTestFailed()) return;
      }
      // What has ended is there at once.
      Watched again;
      const auto same =
          learn(*graph, three_devices(whole.learning->state()), quick(12), Beginning(nullptr), again.context);
      QVERIFY(same.has_value());
      check_same(*same, *all);
    }
  }

  /// The method's whole answer: stages, origin, and what was met besides.
  void the_answer_is_the_same() {
    const auto graph = random_task_graph(6, 40);
    const std::string parameters = "from=heft:iterations=8:rollouts=6:hidden=24";
    const auto whole = placed(*graph, nullptr, {}, parameters);
    QVERIFY(whole.has_value());
    // A state is kept once a second, which is longer than all of this takes; the one at the end is of a shorter search.
    Watched until_end;
    const auto ended = placed(*graph, nullptr, until_end.context, parameters);
    QVERIFY(ended && until_end.learning->state());
    const auto again = placed(*graph, until_end.learning->state(), {}, parameters);
    QVERIFY2(again, again ? "" : again.error().what.c_str());
    for (const auto* other : {&*ended, &*again}) {
      QCOMPARE(other->makespan_s, whole->makespan_s);
      QCOMPARE(other->placement.device, whole->placement.device);
      QCOMPARE(other->origin, whole->origin);
      QCOMPARE(other->stages.size(), whole->stages.size());
      for (std::size_t i = 0; i < whole->stages.size(); ++i) {
        QCOMPARE(other->stages[i].name, whole->stages[i].name);
        QCOMPARE(other->stages[i].makespan_s, whole->stages[i].makespan_s);
      }
      QCOMPARE(other->others.size(), whole->others.size());
      for (std::size_t i = 0; i < whole->others.size(); ++i) {
        QCOMPARE(other->others[i].device, whole->others[i].device);
        QCOMPARE(other->others[i].order, whole->others[i].order);
      }
    }
  }

  /// One sentence each; nothing is learnt and nothing is changed.
  void what_does_not_suit_is_refused() {
    const auto graph = random_task_graph(5, 40);
    Watched first;
    QVERIFY(learn(*graph, three_devices(), quick(2), Beginning(nullptr), first.context).has_value());
    const auto state = first.learning->state();
    const auto refused = [&](const TaskGraph& other, placement::PlacementRequest request, const Settings& settings,
                             const char* words) {
      const auto learnt = learn(other, request, settings, Beginning(nullptr), {});
      QVERIFY(!learnt);
      QCOMPARE(learnt.error().code, ErrorCode::bad_input);
      QVERIFY2(learnt.error().what.find(words) != std::string::npos, learnt.error().what.c_str());
      QVERIFY2(learnt.error().what.find('\n') == std::string::npos, learnt.error().what.c_str());
    };
    const auto longer = random_task_graph(5, 40, [](TaskGraphBuilder& b) { b.links.bandwidth *= 2; });
    refused(*longer, three_devices(state), quick(2), "of another task graph");
    auto request = three_devices(state);
    request.devices = 2;
    refused(*graph, request, quick(2), "or of other devices");
    request = three_devices(state);
    request.seed = 6;
    refused(*graph, request, quick(2), "of other settings");
    refused(*graph, three_devices(state), quick(3), "of other settings");
    Settings wider = quick(2);
    wider.hidden = 32;
    refused(*graph, three_devices(state), wider, "the saved network has ");
    for (const std::string& bytes :
         {std::string(), std::string("x"), state->substr(0, state->size() / 2), *state + "x", state->substr(1)})
      refused(*graph, three_devices(std::make_shared<const std::string>(bytes)), quick(2), "is not whole");
    // Every number that says how many follow, wrong: refused, or so the same as before that it may go on.
    for (std::size_t at = 21; at + 8 < state->size(); at += state->size() / 64) {
      std::string broken = *state;
      for (int k = 0; k < 8; ++k) broken[at + std::size_t(k)] = char(0x7f);
      const auto learnt =
          learn(*graph, three_devices(std::make_shared<const std::string>(broken)), quick(2), Beginning(nullptr), {});
      QVERIFY(learnt || learnt.error().code == ErrorCode::bad_input);
    }
  }

  void courses_are_thinned_out() {
    Learning learning;
    constexpr std::uint64_t kMany = 3 * Learning::kMostPoints + 17;
    for (std::uint64_t i = 1; i <= kMany; ++i) {
      LearningPoint point;
      point.iteration = i;
      learning.add(point);
      const auto points = learning.points();
      QVERIFY(points.size() <= Learning::kMostPoints);
      QCOMPARE(points.back().iteration, i);
    }
    const auto points = learning.points();
    QVERIFY(points.size() > Learning::kMostPoints / 2);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) QVERIFY(points[i].iteration < points[i + 1].iteration);
  }

  void gains_are_said_in_words() {
    QCOMPARE(gain_words(0.1, 0.1), std::string("no faster than it began"));
    QCOMPARE(gain_words(0.1, 0.2), std::string("no faster than it began"));
    QCOMPARE(gain_words(0.2, 0.15), std::string("25 % faster than it began"));
  }
};

QTEST_APPLESS_MAIN(ResumingTest)
#include "resuming_test.moc"
