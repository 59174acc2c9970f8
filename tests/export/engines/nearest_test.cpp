// SPDX-License-Identifier: Apache-2.0
// What engines are told besides the text of a file, and the plan of a frontier that is nearest to what they can run:
// against every point tried by itself.
#include <QtTest>

#include "core/export/nearest.h"
#include "export/engines/exported.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

std::vector<const ExportFormat*> all_engines() {
  std::vector<const ExportFormat*> found;
  for (const ExportFormat& format : export_formats())
    if (format.engine) found.push_back(&format);
  return found;
}

ResultPtr answer_of(const std::string& method, const ScenarioPtr& scenario) {
  auto result = run(method, scenario);
  if (!result) qFatal("%s: %s", method.c_str(), result.error().message().c_str());
  return *result;
}

ScenarioPtr decoder(const char* hardware = "v100-16gb-1x4") {
  return scenario_on(builtin("gpt2?layers=2&hidden=256&sequence=64", 16), hardware);
}

/// A comment of several lines as one.
std::string in_one_line(std::string text) {
  for (std::size_t at; (at = text.find("\n# ")) != std::string::npos;) text.replace(at, 3, " ");
  return text;
}

}  // namespace

class NearestTest : public QObject {
  Q_OBJECT

 private slots:
  /// The text is that of an export; what an engine does otherwise stands in it, where it has room; the command names
  /// the file and starts as many processes as there are devices.
  void an_engines_file_comes_with_notes_and_a_command() {
    int run_by = 0, otherwise = 0;
    for (const char* hardware : {"v100-16gb-1x4", "v100-16gb-2x4"})
      for (const char* method : {"data-parallel", "manual:tp=2", "manual:tp=2:zero=3:recompute=full", "fsdp:zero=2"}) {
        const ResultPtr result = answer_of(method, decoder(hardware));
        for (const ExportFormat* format : all_engines()) {
          const ExportSource source{{}, result, 0};
          const auto file = engine_file(*format, source);
          const auto text = export_text(*format, source);
          QCOMPARE(file.has_value(), text.has_value());
          if (!file) {
            QCOMPARE(file.error().message(), text.error().message());
            continue;
          }
          ++run_by;
          QCOMPARE(file->text, *text);
          const std::string said = in_one_line(file->text);
          for (const std::string& way : file->otherwise) {
            ++otherwise;
            if (!format->remarks) QVERIFY2(said.find("Note: " + way + ".") != std::string::npos, way.c_str());
          }
          QCOMPARE(format->remarks ? export_remarks(*format, source) : file->otherwise, file->otherwise);
          const bool whole_program = file->start.find("TRAIN.py") == std::string::npos;
          const bool named = file->start.find(format->file) != std::string::npos;
          QVERIFY2(named || !whole_program, file->start.c_str());
          const Cluster& cluster = *result->scenario->cluster;
          if (file->start.starts_with("torchrun"))
            QVERIFY2(file->start.starts_with(fmt::format("torchrun --nnodes {} --nproc-per-node {}", cluster.nodes,
                                                         cluster.devices_per_node)) &&
                         (file->start.find("--rdzv-endpoint HOST:29500") != std::string::npos) == (cluster.nodes > 1),
                     file->start.c_str());
        }
      }
    QVERIFY2(run_by > 15 && otherwise > 5, qPrintable(QString("%1 %2").arg(run_by).arg(otherwise)));
  }

  void points_are_looked_at_from_the_fastest_that_fits() {
    const auto point = [](bool fits) { return ResultPoint{.fits = fits}; };
    QCOMPARE(nearest_order({point(true), point(true), point(false)}), (std::vector<std::size_t>{1, 0}));
    QCOMPARE(nearest_order({point(false), point(false)}), (std::vector<std::size_t>{1, 0}));
    QCOMPARE(nearest_order({}), std::vector<std::size_t>());
  }

  void the_nearest_is_the_first_that_an_engine_runs() {
    // Nothing but splits to choose: at the fast end that is data parallelism, which most engines run.
    const auto scenario = scenario_on(builtin("gpt2?layers=2&hidden=256&sequence=64", 256), "v100-16gb-1x2",
                                      [](Settings& s) { s.recompute = s.update_sharding = s.offload = false; });
    const ResultPtr result = answer_of("ft:micro-batches=2", scenario);
    const auto order = nearest_order(result->points);
    const auto engines = all_engines();
    std::size_t opened = 0;
    const auto open = [&](std::span<const std::size_t> some) -> Expected<ResultPtr> {
      opened += some.size();
      return result;
    };
    const auto found = nearest_plans(engines, order, open, {});
    QVERIFY(found && found->size() == engines.size());
    QVERIFY(opened <= order.size());
    int some = 0, none = 0;
    for (std::size_t e = 0; e < engines.size(); ++e) {
      std::optional<std::size_t> first;
      for (const std::size_t k : order)
        if (!first && engine_file(*engines[e], {{}, result, k})) first = k;
      QCOMPARE((*found)[e].has_value(), first.has_value());
      if (!first) {
        ++none;
        continue;
      }
      ++some;
      QCOMPARE((*found)[e]->point, *first);
      QCOMPARE((*found)[e]->file.text, *export_text(*engines[e], {{}, result, *first}));
    }
    QVERIFY2(some > 0 && none > 0, qPrintable(QString("%1 %2").arg(some).arg(none)));
  }

  void looking_can_be_stopped_and_fails_as_opening_does() {
    const ResultPtr result = answer_of("data-parallel", decoder());
    const auto order = nearest_order(result->points);
    const ExportFormat* const engines[] = {find_format("deepspeed")};
    std::stop_source stop;
    stop.request_stop();
    RunContext context;
    context.stop = stop.get_token();
    const auto stopped = nearest_plans(
        engines, order, [&](auto) -> Expected<ResultPtr> { return result; }, context);
    QVERIFY(!stopped && stopped.error().code == ErrorCode::cancelled);
    const auto failed =
        nearest_plans(engines, order, [&](auto) -> Expected<ResultPtr> { return usage_error("it is gone"); }, {});
    QVERIFY(!failed && failed.error().what == "it is gone");
  }

  void what_it_costs_beside_another() {
    const ResultPoint asked{.memory_bytes = std::int64_t(4) << 30, .time_s = 0.5},
        slower{.memory_bytes = std::int64_t(3) << 30, .time_s = 0.55},
        faster{.memory_bytes = std::int64_t(6) << 30, .time_s = 0.4};
    QCOMPARE(words_beside(slower, asked), std::string("10.0 % slower, 1.0 GiB less"));
    QCOMPARE(words_beside(faster, asked), std::string("20.0 % faster, 2.0 GiB more"));
    QCOMPARE(words_beside(asked, asked), std::string("as fast, as much memory"));
  }
};

QTEST_APPLESS_MAIN(NearestTest)
#include "nearest_test.moc"
