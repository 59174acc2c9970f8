// SPDX-License-Identifier: Apache-2.0
// A session carries what was found: opened, its curve is there at once, and the plans follow.
#include <QtTest>
#include <nlohmann/json.hpp>
#include <random>

#include "app/carried_answers.h"
#include "app/session.h"
#include "core/base/json.h"
#include "window_fixture.h"

using namespace turnpoint;
using namespace turnpoint::test;
using nlohmann::json;

namespace {

app::CarriedAnswer some_answer() {
  auto result = std::make_shared<Result>();
  result->method = "ft";
  result->exact = true;
  result->gap = 0;
  result->search_s = 1.5;
  result->notes = {"a note"};
  result->explanations = {"a reason", "another"};
  result->weights = {{"w", 8, 16, 0.25, 2, {1, 2, 3}, {4, 5, 6}, "sharded"},
                     {"v", 1, 16, 0, 4, {1, 1, 0}, {1, 1, 0}, "whole"}};
  result->whole_updates = {{5, 0, 7, 0, 0, 9}, {0.25, 1.0 / 3, 0, 0}, {1.0 / 7, 0, 0, 0, 0, 0, 0.125}};
  for (int i = 0; i < 300; ++i)
    result->points.push_back({(std::int64_t(1) << 40) + i, 1.0 / (3 + i), 0.7 / (3 + i), 0.3 / (3 + i)});
  result->lower_bound = {{5, 0.25}};
  result->bounds = {{1, {{0.3, 1e-12}, {1.0 / 303, 0}}}, {4, {{0.25, 0}}}};
  result->near_best = 17;
  return {"what was asked", result};
}

}  // namespace

class CarriedAnswersTest : public QObject {
  Q_OBJECT

 private slots:
  void what_is_written_is_read_to_the_last_bit() {
    const app::CarriedAnswer before = some_answer();
    const auto after = app::read_answer(app::write_answer(before), "s");
    QVERIFY(after && after->result);
    QCOMPARE(after->question, before.question);
    QVERIFY(after->result->points == before.result->points);
    QVERIFY(after->result->lower_bound == before.result->lower_bound);
    QCOMPARE(after->result->exact, true);
    QVERIFY(after->result->gap == before.result->gap);
    QVERIFY(after->result->notes == before.result->notes);
    QVERIFY(after->result->explanations == before.result->explanations);
    QVERIFY(after->result->weights == before.result->weights);
    QVERIFY(after->result->bounds == before.result->bounds);
    const auto &written = before.result->whole_updates, &read = after->result->whole_updates;
    QVERIFY(read && read->memory == written->memory && read->compute == written->compute &&
            read->network == written->network);
    QVERIFY(!after->result->plans && !after->result->scenario);
  }

  void another_version_is_searched_again() {
    json object = app::write_answer(some_answer());
    object["version"] = "0.0.1 1";
    const auto read = app::read_answer(object, "s");
    QVERIFY(read && !read->result);
  }

  void damaged_figures_are_an_error_and_do_no_harm() {
    const json whole = app::write_answer(some_answer());
    for (const auto& [key, wrong] : {std::pair<const char*, json>{"count", 299},
                                     {"count", 0},
                                     {"count", 1e15},
                                     {"points", ""},
                                     {"points", "AAAA"},
                                     {"points", "/////////w=="},
                                     {"points", 7},
                                     {"bounds", 2},
                                     {"question", nullptr},
                                     {"gap", -1}}) {
      json object = whole;
      object[key] = wrong;
      const auto read = app::read_answer(object, "s.turnpoint");
      QVERIFY2(!read, key);
      QVERIFY(read.error().message().find("s.turnpoint") != std::string::npos);
    }
    std::mt19937 random(5);
    const std::string text = whole["points"].get<std::string>();
    for (int i = 0; i < 500; ++i) {
      json object = whole;
      std::string changed = text;
      for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = char(32 + random() % 95);
      object["points"] = changed;
      const auto read = app::read_answer(object, "s");
      if (read && read->result)
        for (const ResultPoint& point : read->result->points) QVERIFY(std::isfinite(point.time_s));
    }
  }

  // What is none is left out, and so are bounds that the answer's own points contradict: nothing would be searched
  // there.
  void bounds_that_cannot_be_are_left_out() {
    const json whole = app::write_answer(some_answer());
    QCOMPARE(whole["bounds_by_number"].size(), std::size_t(2));
    const json line = {{"time_s", 1e-3}, {"s_per_byte", 0}};
    const auto one = [](json number, json lines) { return json{{{"micro_batches", number}, {"lines", lines}}}; };
    QVERIFY(!app::read_answer(whole, "s")->result->bounds.empty());
    for (const json& wrong :
         {json(7), json(json::array({7})), one(0, {line}), one("1", {line}), one(1, 7), one(1, json::array({7})),
          one(1, {{{"time_s", -1}, {"s_per_byte", 0}}}), one(1, {{{"time_s", 1}, {"s_per_byte", nullptr}}}),
          one(1, {{{"time_s", 1}, {"s_per_byte", 0}}}), one(1.5, {line}), one(1, json::array()),
          one(1, {{{"time_s", 1e-3}, {"s_per_byte", 1e-40}}}), one(1, {line, {{"time_s", 1e-4}, {"s_per_byte", 1e-9}}}),
          one(1, {{{"time_s", 1e-4}, {"s_per_byte", 1e-12}}, line}),
          json{one(1, {line})[0], {{"micro_batches", 2}, {"lines", json::array()}}},
          json{one(1, {line})[0], one(1, {line})[0]}}) {
      json object = whole;
      object["bounds_by_number"] = wrong;
      const auto read = app::read_answer(object, "s");
      QVERIFY2(read && read->result && read->result->bounds.empty(), wrong.dump().c_str());
    }
    json object = whole;
    object["bounds_by_number"] = one(2, {line});
    QCOMPARE(app::read_answer(object, "s")->result->bounds.size(), std::size_t(1));
  }

  void an_opened_session_draws_its_curve_before_anything_is_searched() {
    QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("s.turnpoint"));
    std::vector<ResultPoint> points;
    std::optional<std::size_t> turning;
    {
      WindowFixture f;
      QVERIFY(f.open());
      f.document().set_option("inter-bandwidth-scale", 0.5, 0);
      QVERIFY(f.settle());
      points = f.runner().find("ft")->result->points;
      turning = f.runner().find("ft")->result->turning_point;
      QVERIFY(f.window->sessions().save(path));
    }
    WindowFixture f;
    fake_world().held = true;
    f.window->sessions().open(path);
    QVERIFY(QTest::qWaitFor([&] { return f.chart().data().series.size() >= 3; }, 60000));
    const views::ChartSeries& drawn = *f.chart().data().subject();
    QVERIFY(drawn.result->points == points);
    QCOMPARE(drawn.result->turning_point, turning);
    QVERIFY(!drawn.coarse && drawn.of.isEmpty());
    QVERIFY(!drawn.result->plans);
    QCOMPARE(f.runner().coarse_started(), 0);
    // The plans follow, without a figure that moves.
    fake_world().held = false;
    QVERIFY(f.settle());
    const auto& found = f.runner().find("ft")->result;
    QVERIFY(found->plans && found->points == points);
  }

  void a_session_whose_question_has_changed_is_searched() {
    QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("s.turnpoint"));
    {
      WindowFixture f;
      QVERIFY(f.open());
      QVERIFY(f.window->sessions().save(path));
    }
    json document = *read_json_file(path.toStdString());
    document["scenario"]["settings"]["inter-bandwidth-scale"] = "0.5";
    QVERIFY(write_file_atomically(path.toStdString(), document.dump()));
    WindowFixture f;
    f.window->sessions().open(path);
    QVERIFY(QTest::qWaitFor([&] { return f.runner().find("ft")->result != nullptr; }, 60000));
    QVERIFY(f.runner().find("ft")->result->plans);  // searched, not carried
    QVERIFY(f.settle());
  }
};

QTEST_MAIN(CarriedAnswersTest)
#include "carried_answers_test.moc"
