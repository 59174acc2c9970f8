// SPDX-License-Identifier: Apache-2.0
// The list of what can be exported: every record is whole, writes what it says it accepts and refuses the rest in one
// sentence; the manual page of the command line names exactly these formats.
#include <fmt/format.h>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/export/format.h"
#include "core/export/writers.h"
#include "core/plan/evaluator.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/result_json.h"
#include "core/plan_io/result_text.h"
#include "search/scenarios.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

std::string message_of(const Expected<std::string>& text) { return text ? std::string() : text.error().message(); }

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Results whose first point is a plan of the kind, on four devices; stages need a model of equal layers.
const ResultPtr& result_of(PlanKind kind) {
  static const auto results = [] {
    std::map<PlanKind, ResultPtr> made;
    for (const auto& [key, method] : {std::pair(PlanKind::sharding, "data-parallel"),
                                      {PlanKind::pipeline, "manual:dp=2:pp=2:micro-batches=4"},
                                      {PlanKind::ratio, "accpar"},
                                      {PlanKind::placement, "heft"}}) {
      const ModelPtr model = builtin(key == PlanKind::pipeline ? "gpt2" : "lenet", 32);
      const char* hardware = key == PlanKind::ratio ? "v100-16gb-1x2+a100-80gb-1x2" : "v100-16gb-1x4";
      const auto result = run(method, scenario_on(model, hardware));
      if (!result) qFatal("%s: %s", method, result.error().message().c_str());
      made[key] = *result;
    }
    return made;
  }();
  return results.at(kind);
}

ExportSource source_of(PlanKind kind) { return {{result_of(kind)}, result_of(kind), 0}; }

}  // namespace

class FormatTest : public QObject {
  Q_OBJECT

 private slots:
  void the_results_hold_the_kinds_they_stand_for() {
    for (const PlanKind kind : kPlanKinds) {
      const auto plans = result_of(kind)->plans;
      QCOMPARE(plans->kind(0), kind);
      QCOMPARE(kind_of(plans->plan(0)), kind);
    }
  }

  void every_record_is_whole() {
    std::set<std::string> keys, files, titles;
    for (const ExportFormat& format : export_formats()) {
      const std::string key(format.key);
      QVERIFY2(QRegularExpression("^[a-z0-9]+([-:][a-z0-9]+)*$").match(key.c_str()).hasMatch(), key.c_str());
      QVERIFY2(keys.insert(key).second, key.c_str());
      QVERIFY2(titles.insert(format.title()).second, key.c_str());
      QVERIFY2(files.insert(std::string(format.file)).second, key.c_str());
      QVERIFY2(!format.subject.empty() && !format.name.empty() && !format.text.empty(), key.c_str());
      QVERIFY2(!format.text.ends_with('.'), key.c_str());
      QVERIFY2(QRegularExpression("^[a-z-]+\\.[a-z]+$").match(std::string(format.file).c_str()).hasMatch(),
               key.c_str());
      QVERIFY2(format.file.ends_with("." + std::string(format.suffix())), key.c_str());
      // For plans, for the points of a result, or for results: one of them.
      QCOMPARE(int(format.for_plans()) + int(format.points != nullptr) + int(format.results != nullptr), 1);
      bool some_kind = false;
      for (const PlanKind kind : kPlanKinds) some_kind |= format.accepts(kind);
      QCOMPARE(some_kind, format.for_plans());
      QCOMPARE(find_format(format.key), &format);
    }
    QVERIFY(!find_format("morse") && !find_format(""));
  }

  // Of a step through micro-batches, too, the rows add up to what the evaluator finds the plan to cost.
  void a_table_of_micro_batches_adds_up() {
    const auto scenario = scenario_on(builtin("gpt2?layers=1", 32), "v100-16gb-1x4");
    for (const char* method : {"ft:micro-batches=1", "ft:micro-batches=4", "manual:dp=2:tp=2:micro-batches=8:zero=3",
                               "manual:dp=4:micro-batches=2:zero=1"}) {
      const auto result = run(method, scenario);
      QVERIFY2(result, method);
      const std::size_t points = (*result)->points.size();
      for (const std::size_t k : {std::size_t(0), points / 2, points - 1}) {
        const auto plan = std::get<PlanPtr>((*result)->plans->plan(k));
        const auto cost = evaluate_plan(*(*result)->scenario, *plan);
        QVERIFY2(cost, method);
        std::istringstream table(write_plan_csv(*(*result)->scenario, *plan));
        std::string line;
        std::getline(table, line);
        const QStringList head = QString::fromStdString(line).trimmed().split(u',');
        double seconds = 0;
        while (std::getline(table, line)) {
          const QStringList row = QString::fromStdString(line).trimmed().split(u',');
          // Words of splits and memory choices may hold commas: figures are counted from the end.
          for (qsizetype c = 1; c <= 13; ++c)
            if (head[head.size() - c].endsWith("_s")) seconds += row[row.size() - c].toDouble();
        }
        QVERIFY2(std::abs(seconds - cost->time_s()) <= 1e-9 * seconds, method);
      }
    }
  }

  void what_is_accepted_is_written_and_the_rest_refused() {
    QTemporaryDir folder;
    for (const ExportFormat& format : export_formats())
      for (const PlanKind kind : kPlanKinds) {
        const std::string what = fmt::format("{} of {}", format.title(), plural_of(kind));
        if (format.engine && format.accepts(kind)) continue;  // by the plan: tests/export/engines
        const ExportSource source = source_of(kind);
        const auto text = export_text(format, source);
        const std::filesystem::path path =
            folder.filePath(QString::fromStdString(what + "." + std::string(format.suffix()))).toStdString();
        const auto written = export_to_file(format, source, path);
        if (format.for_plans() && !format.accepts(kind)) {
          QVERIFY2(!text && !written && !std::filesystem::exists(path), what.c_str());
          QCOMPARE(text.error().code, ErrorCode::usage);
          QCOMPARE(text.error().message(), refusal_of(format, kind, FormatNames::names));
          QCOMPARE(message_of(export_text(format, source, FormatNames::keys)),
                   refusal_of(format, kind, FormatNames::keys));
          continue;
        }
        QVERIFY2(text, (what + ": " + message_of(text)).c_str());
        QVERIFY2(text->size() > 40, what.c_str());
        QVERIFY2(written, what.c_str());
        QVERIFY2(contents(path) == *text, what.c_str());
        if (format.suffix() == "json") QVERIFY2(nlohmann::json::accept(*text), what.c_str());
      }
  }

  void a_refusal_is_one_sentence_that_says_what_to_do() {
    const ExportFormat& svg = *find_format("svg");
    QCOMPARE(refusal_of(svg, PlanKind::placement, FormatNames::keys),
             std::string("--to svg is not for placements, which go to json, csv, dot, trace and task-graph"));
    QCOMPARE(refusal_of(svg, PlanKind::placement, FormatNames::names),
             std::string("SVG is not for placements, which go to JSON, CSV, Graphviz DOT, trace and task graph"));
    // Programs and settings for training: why a plan with unlike parts has no place there, and what to do instead.
    for (const char* key : {"jax", "jax:explicit", "pytorch", "megatron", "torchtitan"}) {
      const ExportFormat* format = find_format(key);
      QVERIFY2(format && !format->accepts(PlanKind::ratio), key);
      QCOMPARE(refusal_of(*format, PlanKind::ratio, FormatNames::keys),
               fmt::format("--to {} is not for ratio plans, which go to json, csv, dot, svg and trace; it gives every "
                           "device an equal part, so search on equal devices, where the same method has a plan that "
                           "splits operators",
                           key));
    }
    // A format that splits operators alone.
    ExportFormat jax{.key = "jax", .subject = "Plan", .name = "JAX", .file = "plan.py", .text = "A program"};
    jax.plan = [](const Scenario&, const Plan&) { return std::string("mesh"); };
    jax.pipelines = false;
    QVERIFY(jax.accepts(PlanKind::sharding) && !jax.accepts(PlanKind::pipeline) && !jax.accepts(PlanKind::placement));
    QCOMPARE(*export_text(jax, source_of(PlanKind::sharding)), std::string("mesh"));
    QCOMPARE(
        message_of(export_text(jax, source_of(PlanKind::pipeline), FormatNames::keys)),
        std::string("--to jax is not for pipelines, which go to json, csv, dot, svg, trace, pytorch, transformers, "
                    "megatron, torchtitan and deepspeed"));
    QVERIFY(message_of(export_text(jax, source_of(PlanKind::placement))).starts_with("JAX is not for placements"));
  }

  void where_nothing_is_there_that_is_said() {
    for (const ExportFormat& format : export_formats()) {
      const std::string says = format.for_plans() ? "no plan is picked" : "there is no result yet";
      QCOMPARE(message_of(export_text(format, {})), says);
      const auto written = export_to_file(format, {}, "/nowhere/file");
      QVERIFY(!written);
      QCOMPARE(written.error().message(), says);
    }
    ExportSource beyond = source_of(PlanKind::sharding);
    beyond.point = beyond.picked->points.size();
    QCOMPARE(message_of(export_text(*find_format("json"), beyond)), std::string("no plan is picked"));
    const auto written = export_to_file(*find_format("json"), source_of(PlanKind::sharding), "/nowhere/plan.json");
    QVERIFY(!written && written.error().code == ErrorCode::bad_input);
  }

  // To the byte what the writers of core/plan make of them.
  void texts_are_those_of_the_writers() {
    const ResultPtr& result = result_of(PlanKind::sharding);
    const ExportSource source = source_of(PlanKind::sharding);
    const Plan plan = result->plans->sharding(0);
    const Scenario& scenario = *result->scenario;
    QCOMPARE(*export_text(*find_format("json"), source), write_plan(scenario, plan).dump(1) + "\n");
    QCOMPARE(*export_text(*find_format("csv"), source), write_plan_csv(scenario, plan));
    QCOMPARE(*export_text(*find_format("dot"), source), write_plan_dot(scenario, plan));
    QCOMPARE(*export_text(*find_format("svg"), source), write_plan_svg(scenario, plan));
    QCOMPARE(*export_text(*find_format("points-csv"), source), write_points_csv(*result));
    QCOMPARE(*export_text(*find_format("results-json"), source), write_result(*result, false).dump(1) + "\n");
    const auto both = export_text(*find_format("results-json"), {{result, result_of(PlanKind::placement)}, nullptr, 0});
    QCOMPARE(nlohmann::json::parse(*both)["results"].size(), std::size_t(2));
  }

  // What a result file holds is enough for some, where its model and hardware are gone.
  void plans_alone() {
    const ResultPtr& result = result_of(PlanKind::sharding);
    const auto document = write_plan(*result->scenario, result->plans->sharding(0));
    const auto alone = read_plan_alone(document, "plan");
    QVERIFY(alone);
    for (const ExportFormat& format : export_formats()) {
      const ExportSource source = source_of(PlanKind::sharding);
      if (format.held) QCOMPARE(format.held(document), *export_text(format, source));
      if (format.plan_alone) QCOMPARE(*format.plan_alone(*alone), *export_text(format, source));
    }
    auto without_parts = *alone;
    without_parts.parts = false;
    QVERIFY(!find_format("csv")->plan_alone(without_parts));
  }

  void words() {
    QCOMPARE(listed({}), std::string());
    QCOMPARE(listed({"a"}), std::string("a"));
    QCOMPARE(listed({"a", "b"}), std::string("a and b"));
    QCOMPARE(listed({"a", "b", "c"}), std::string("a, b and c"));
  }

  void the_manual_page_names_exactly_these() {
    const std::string page = contents(TURNPOINT_SOURCE_DIR "/packaging/man/turnpoint-cli.1");
    const std::string begin = ".\\\" Formats: as core/export lists them.\n", end = ".\\\" End of formats.\n";
    const auto first = page.find(begin), last = page.find(end);
    QVERIFY(first != std::string::npos && last != std::string::npos);
    std::string expected;
    for (const ExportFormat& format : export_formats()) {
      if (!format.for_plans() && !format.points) continue;
      std::vector<std::string> refused;
      for (const PlanKind kind : kPlanKinds)
        if (format.for_plans() && !format.accepts(kind)) refused.emplace_back(plural_of(kind));
      std::string key(format.key);
      for (std::size_t at = 0; (at = key.find('-', at)) != std::string::npos; at += 2) key.insert(at, 1, '\\');
      expected +=
          fmt::format(".TP\n.B {}\n{}{}.\n", key, format.text, refused.empty() ? "" : "; not of " + listed(refused));
    }
    QCOMPARE(page.substr(first + begin.size(), last - first - begin.size()), expected);
  }
};

QTEST_APPLESS_MAIN(FormatTest)
#include "format_test.moc"
