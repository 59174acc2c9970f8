// SPDX-License-Identifier: Apache-2.0
// What is told of a point: of a plan that is a split of one's own, that split is the nearest, at its own price; what
// faster links are worth is what that split costs on them; what memory is worth stands in the frontier.
#include <QtTest>

#include "core/search/explain/point_story.h"
#include "core/search/explain/told_answer.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

ScenarioPtr small_gpt(const std::function<void(Settings&)>& change = {}) {
  return test::scenario_on(test::builtin("gpt2?layers=2&hidden=256&sequence=64", 32), "v100-16gb-2x4", change);
}

ResultPtr found(const std::string& method, const ScenarioPtr& scenario) {
  const auto result = test::run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return *result;
}

PointStory told(const ResultPtr& result, std::size_t point) {
  const auto story = story_of(*result, point, {});
  if (!story) qFatal("%s", story.error().message().c_str());
  return *story;
}

}  // namespace

class PointStoryTest : public QObject {
  Q_OBJECT

 private slots:
  void a_split_is_nearest_to_itself() {
    const auto scenario = small_gpt();
    for (const std::string method :
         {"manual", "manual:tp=2:zero=1", "manual:tp=4:sequence-parallel", "manual:micro-batches=2:zero=2",
          "manual:zero=3:recompute=op", "manual:tp=2:recompute=full", "manual:pp=2:micro-batches=4",
          "manual:zero=3:shard=2", "manual:tp=2:zero=1:shard=2"}) {
      const ResultPtr result = found(method, scenario);
      const PointStory story = told(result, 0);
      QVERIFY2(story.nearest, method.c_str());
      QVERIFY2(test::close(story.nearest->point.time_s, result->points[0].time_s),
               (method + " is told as " + story.nearest->name).c_str());
      QCOMPARE(story.nearest->point.memory_bytes, result->points[0].memory_bytes);
    }
  }

  void groups_of_context_and_experts_too() {
    const ScenarioPtr mixture = test::scenario_on(
        test::builtin("mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=32", 32), "v100-16gb-1x8");
    const std::vector<std::pair<ScenarioPtr, std::string>> cases = {{small_gpt(), "manual:cp=2:tp=2"},
                                                                    {small_gpt(), "manual:cp=4:zero=3"},
                                                                    {mixture, "manual:ep=4:zero=1"},
                                                                    {mixture, "manual:cp=2:ep=4:tp=2"},
                                                                    {mixture, "manual:cp=4:ep=2:zero=3:shard=4"}};
    for (const auto& [scenario, method] : cases) {
      const ResultPtr result = found(method, scenario);
      const PointStory story = told(result, 0);
      QVERIFY2(story.nearest && test::close(story.nearest->point.time_s, result->points[0].time_s), method.c_str());
      QCOMPARE(story.nearest->point.memory_bytes, result->points[0].memory_bytes);
    }
  }

  // Half of the experts are split otherwise than any split of one's own: where that split is refused, what it would be
  // without.
  void experts_that_no_split_has_so() {
    const auto scenario = test::scenario_on(
        test::builtin("mixtral-8x7b?layers=2&hidden=1024&width=256&sequence=32", 32), "v100-16gb-1x8");
    const ResultPtr result = found("ft", scenario);
    int with_experts = 0, without_them = 0;
    for (std::size_t p = 0; p < result->points.size(); p += std::max<std::size_t>(1, result->points.size() / 8)) {
      const PointStory story = told(result, p);
      if (story.resembles.expert <= 1) continue;
      ++with_experts;
      QVERIFY2(story.nearest && story.why_none.empty(), std::to_string(p).c_str());
      const bool has_them = story.nearest->name.find(":ep=") != std::string::npos;
      if (has_them) continue;
      ++without_them;
      const std::string so = story.nearest->name + ":ep=" + std::to_string(story.resembles.expert);
      QVERIFY2(!test::run(so, scenario).has_value(), so.c_str());
      const auto run = test::run(story.nearest->name, scenario);
      QVERIFY2(run && test::close(story.nearest->point.time_s, (*run)->points[0].time_s), story.nearest->name.c_str());
    }
    QVERIFY2(with_experts > 0 && without_them > 0, qPrintable(QString("%1 %2").arg(with_experts).arg(without_them)));
  }

  void what_others_resemble_is_priced_for_real() {
    const auto scenario = small_gpt();
    const PointStory story = told(found("fsdp:zero=3", scenario), 0);
    QVERIFY(story.nearest);
    QCOMPARE(story.nearest->name, std::string("manual:zero=3"));
    const ResultPtr run = found(story.nearest->name, scenario);
    QCOMPARE(story.nearest->point.memory_bytes, run->points[0].memory_bytes);
    QVERIFY(test::close(story.nearest->point.time_s, run->points[0].time_s));
    const PointStory hybrid = told(found("fsdp:group=node", scenario), 0);
    QVERIFY(hybrid.nearest);
    QCOMPARE(hybrid.nearest->name, std::string("manual:zero=3:shard=4"));
  }

  void what_cannot_be_said_is_refused_with_the_reason() {
    // 32 micro-batches of one sample each leave none to share.
    const auto scenario = small_gpt();
    const ResultPtr result = found("ft:micro-batches=32", scenario);
    const PointStory story = told(result, 0);
    QVERIFY(!story.nearest || story.resembles.data == 1);
    if (!story.nearest) QVERIFY(!story.why_none.empty());
  }

  void hardware_is_worth_what_the_split_costs_on_it() {
    const ResultPtr result = found("manual:tp=2:zero=1", small_gpt());
    const PointStory story = told(result, 0);
    QCOMPARE(story.worth.size(), std::size_t(3));
    const Cluster& cluster = *result->scenario->cluster;
    for (const Worth& worth : story.worth) {
      const auto better = small_gpt([&](Settings& settings) {
        if (worth.of == Worth::Of::intra_bandwidth)
          settings.factors.intra_bandwidth = 1 + 1e9 / cluster.links[kIntraNode].bandwidth;
        if (worth.of == Worth::Of::inter_bandwidth)
          settings.factors.inter_bandwidth = 1 + 1e9 / cluster.links[kInterNode].bandwidth;
        if (worth.of == Worth::Of::device_speed) settings.factors.device_speed = 1 + 1e12 / cluster.device.peak_fp32;
      });
      QVERIFY(test::close(worth.time_s, found("manual:tp=2:zero=1", better)->points[0].time_s));
      QVERIFY(worth.time_s < result->points[0].time_s);
    }
  }

  void times_are_told_as_people_say_them() {
    QCOMPARE(slower_words(1.5, 1), std::string("50.0 % (500 ms) slower"));
    QCOMPARE(slower_words(0.5, 1), std::string("50.0 % (500 ms) faster"));
    QCOMPARE(slower_words(28.5, 1.5), std::string("19.0 times as long (27.0 s more)"));
    QCOMPARE(slower_words(1, 1), std::string("as fast"));
  }

  void memory_is_worth_what_the_frontier_has() {
    const ResultPtr result = found("ft:micro-batches=1", small_gpt());
    for (const std::size_t k : {std::size_t(0), result->points.size() / 2, result->points.size() - 1}) {
      const PointStory story = told(result, k);
      std::optional<std::size_t> best;
      for (std::size_t i = 0; i < result->points.size(); ++i)
        if (result->points[i].time_s < result->points[k].time_s &&
            result->points[i].memory_bytes - result->points[k].memory_bytes <= (std::int64_t(1) << 30))
          best = i;
      QVERIFY(story.with_more_memory == best);
    }
  }
};

QTEST_APPLESS_MAIN(PointStoryTest)
#include "point_story_test.moc"
