// SPDX-License-Identifier: Apache-2.0
// The sample studies: what each session's notes state about our figures is what its own scenarios give. Searched
// coarsely, which is quick: every point is a real plan, and least memory and least time are exact. The benchmark
// studies_bench prints the exact figures.
#include <QFile>
#include <QRegularExpression>
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/search/registry.h"
#include "plan_io/schema_check.h"
#include "study_figures.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

app::Session session_of(const char* file) {
  for (const app::Study& study : app::studies()) {
    if (std::string(study.file) != file) continue;
    auto session = app::load_study(app::study_path(study));
    if (!session) qFatal("%s", session.error().message().c_str());
    return *session;
  }
  qFatal("no study %s", file);
}

std::vector<StudyScenario> scenarios_of(const char* file) {
  auto scenarios = study_scenarios(session_of(file));
  if (!scenarios) qFatal("%s", scenarios.error().message().c_str());
  return *scenarios;
}

/// The studies share scenarios; what one has searched the others take up.
ResultPtr searched(const StudyScenario& study, const char* method) {
  static std::map<std::string, ResultPtr> known;
  std::string key = std::string(method) + " " + study.scenario->model->source + " " + study.scenario->cluster->name;
  for (const OptionRecord& option : scenario_options())
    key.append(" ").append(format_option(option, get_option(study.scenario->settings, option.key)));
  ResultPtr& result = known[key];
  if (result) return result;
  auto found = search_study(study, method, SearchPass::coarse);
  if (!found) qFatal("%s", found.error().message().c_str());
  return result = *found;
}

const StudyScenario& labelled(const std::vector<StudyScenario>& list, const std::string& label) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.label == label; });
  if (at == list.end()) qFatal("no search %s", label.c_str());
  return *at;
}

bool near(double value, double expected, double tolerance) { return std::abs(value - expected) <= tolerance; }

/// Fewest devices among 1, 2, 4, ... on which a method's plan with least memory fits.
int fewest(const StudyScenario& study, const char* method) {
  for (const int devices : doubling_counts(*study.scenario->cluster)) {
    const auto here = on_devices(study.scenario, devices);
    if (!here) qFatal("%s", here.error().message().c_str());
    if (searched({{}, method, *here}, method)->points.front().fits) return devices;
  }
  return 0;
}

double time_on(const StudyScenario& study, const char* method, int devices) {
  const auto result = searched({{}, method, *on_devices(study.scenario, devices)}, method);
  const auto fastest = result->fastest_that_fits();
  return fastest ? result->points[*fastest].time_s : INFINITY;
}

}  // namespace

class StudiesTest : public QObject {
  Q_OBJECT

 private slots:
  void every_study_is_a_session_with_notes() {
    QVERIFY(app::studies().size() >= 5);
    int of_tensoropt = 0;
    for (const app::Study& study : app::studies()) {
      QFile file(app::study_path(study));
      QVERIFY2(file.open(QIODevice::ReadOnly), study.file);
      const auto text = file.readAll();
      const auto document = parse_json(text.toStdString(), study.file);
      QVERIFY(document.has_value());
      QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas").check("session@1", *document), std::string());
      const app::Session session = session_of(study.file);
      QCOMPARE(session.title, std::string(study.title));
      for (const char* part : {"**The paper", "**Here", "**Why they differ"})
        QVERIFY2(session.notes.find(part) != std::string::npos, study.file);
      QVERIFY(session.scenario.model.starts_with("builtin:"));
      QVERIFY(!session.methods.empty());
      for (const auto& name : session.methods) QVERIFY2(find_method(name).has_value(), name.c_str());
      // What the TensorOpt paper counts and does not know; the other papers have accounts of their own.
      if (session.notes.find("*Study: TensorOpt") == std::string::npos) continue;
      ++of_tensoropt;
      QCOMPARE(session.methods.front(), std::string("ft"));
      QCOMPARE(session.scenario.settings.accounting, Accounting::paper);
      const Settings& settings = session.scenario.settings;
      QVERIFY(!settings.recompute && !settings.update_sharding && !settings.offload);
    }
    QCOMPARE(of_tensoropt, 8);
  }

  void frontier_of_the_rnn() {
    const StudyScenario own = scenarios_of("frontier-rnn").front();
    const auto ft = searched(own, "ft"), dp = searched(own, "data-parallel"), optcnn = searched(own, "optcnn");
    QVERIFY(near(gib(dp->points.front().memory_bytes), 108.9, 0.1));  // the paper: 109 GB
    QVERIFY(!dp->points.front().fits);
    QVERIFY(ft->points.back().fits);
    QVERIFY(gib(ft->points.back().memory_bytes) < 12);
    QVERIFY(dp->points.front().time_s > 4 * ft->points.front().time_s);
    QVERIFY(std::abs(optcnn->points.front().time_s / ft->points.back().time_s - 1) < 1e-9);
  }

  void frontier_of_wide_resnet_and_the_transformer() {
    for (const char* file : {"frontier-wide-resnet", "frontier-transformer"}) {
      const StudyScenario own = scenarios_of(file).front();
      const auto ft = searched(own, "ft"), dp = searched(own, "data-parallel"), optcnn = searched(own, "optcnn");
      const double dp_memory = gib(dp->points.front().memory_bytes);
      QVERIFY(near(dp_memory, std::string(file) == "frontier-transformer" ? 13.7 : 12.0, 0.15));
      QVERIFY(dp->points.front().fits);
      // OptCNN is the fastest end.
      QVERIFY(std::abs(optcnn->points.front().time_s / ft->points.back().time_s - 1) < 1e-9);
      QVERIFY(dp->points.front().time_s > 1.2 * ft->points.back().time_s);
      // Half of data parallel's memory buys nearly all of the speed there is, at the turning point and near the best
      // time.
      const auto turning = turning_of_shape(*ft), near_best = near_best_of_shape(*ft);
      QVERIFY(turning && near_best);
      QVERIFY(gib(near_best->memory_bytes) < 0.5 * dp_memory);
      QVERIFY(near_best->time_s < 1.05 * ft->points.back().time_s);
      QVERIFY(gib(turning->memory_bytes) < 0.5 * dp_memory);
      QVERIFY(turning->time_s < 1.2 * ft->points.back().time_s);
      QVERIFY(ft->points.front().time_s > 1.5 * turning->time_s);
    }
  }

  // The figures that notes print are those that come out.
  void notes_have_the_ends_of_their_frontiers() {
    for (const char* file : {"frontier-rnn", "frontier-wide-resnet", "frontier-transformer"}) {
      const StudyScenario own = scenarios_of(file).front();
      const std::string notes = session_of(file).notes;
      const auto ft = search_study(own, "ft", SearchPass::exact);  // ends of a sketch are near them only
      QVERIFY(ft.has_value());
      const double times[] = {(*ft)->points.front().time_s, (*ft)->points.back().time_s,
                              searched(own, "tofu")->points.front().time_s};
      for (const double time : times) {
        const std::string text = QString::asprintf("%.2f s", time).toStdString();
        QVERIFY2(notes.find(text) != std::string::npos, (std::string(file) + ": " + text).c_str());
      }
    }
  }

  void tofu_is_small_and_slow() {
    for (const char* file : {"frontier-rnn", "frontier-wide-resnet", "frontier-transformer"}) {
      const StudyScenario own = scenarios_of(file).front();
      const auto ft = searched(own, "ft"), tofu = searched(own, "tofu"), dp = searched(own, "data-parallel");
      const ResultPoint& own_point = tofu->points.front();
      QVERIFY2(own_point.memory_bytes < dp->points.front().memory_bytes * 3 / 5, file);
      QVERIFY2(own_point.time_s > ft->points.back().time_s, file);
      // Slow as in the paper: under the session's switches it has nothing that ft is denied.
      if (std::string(file) != "frontier-rnn") QVERIFY2(own_point.time_s > 1.6 * ft->points.back().time_s, file);
    }
  }

  void mesh_tensorflow_on_wide_resnet() {
    const StudyScenario own = scenarios_of("frontier-wide-resnet").front();
    const auto mesh = searched(own, "mesh-tensorflow"), dp = searched(own, "data-parallel");
    // Its frontier is the data-parallel point.
    QCOMPARE(mesh->points.size(), std::size_t(1));
    QCOMPARE(mesh->points.front().memory_bytes, dp->points.front().memory_bytes);
    QVERIFY(std::abs(mesh->points.front().time_s / dp->points.front().time_s - 1) < 1e-9);
  }

  void bandwidth_between_nodes_moves_time_and_not_memory() {
    const auto all = scenarios_of("network-bandwidth");
    QCOMPARE(all.size(), std::size_t(4));
    std::map<double, ResultPoint> turning;
    std::int64_t least = 0;
    for (const StudyScenario& study : all) {
      const auto result = searched(study, "ft");
      const auto at = turning_of_shape(*result);
      QVERIFY(at);
      turning[study.scenario->settings.factors.inter_bandwidth] = *at;
      QVERIFY(least == 0 || least == result->points.front().memory_bytes);  // memory knows no links
      least = result->points.front().memory_bytes;
    }
    std::int64_t low = INT64_MAX, high = 0;
    double before = INFINITY;
    for (const auto& [factor, point] : turning) {
      low = std::min(low, point.memory_bytes), high = std::max(high, point.memory_bytes);
      QVERIFY(point.time_s < before);
      before = point.time_s;
    }
    QVERIFY2(static_cast<double>(high) < 1.15 * static_cast<double>(low), qPrintable(QString::number(gib(high))));
    const double ratio = turning.at(4).time_s / turning.at(0.5).time_s;
    QVERIFY2(ratio > 0.42 && ratio < 0.6, qPrintable(QString::number(ratio)));
  }

  void turning_point_memory_grows_with_the_hidden_size() {
    const auto all = scenarios_of("hidden-size");
    std::map<double, double> turning;  // memory by parameters
    for (const StudyScenario& study : all) {
      const auto at = turning_of_shape(*searched(study, "ft"));
      QVERIFY(at);
      turning[static_cast<double>(study.scenario->model->parameters)] = gib(at->memory_bytes);
    }
    QCOMPARE(turning.size(), std::size_t(4));
    double before = 0;
    for (const auto& [parameters, memory] : turning) {
      QVERIFY2(memory > 1.1 * before, qPrintable(QString::number(memory)));
      before = memory;
    }
  }

  void nvlink_and_pcie_on_eight_devices() {
    const auto all = scenarios_of("nvlink-and-pcie");
    const auto nvlink = searched(all.front(), "ft");
    const auto pcie = searched(labelled(all, "PCIe, NVLink \u00d70.05"), "ft");
    QCOMPARE(all.front().scenario->cluster->devices(), 8);
    QCOMPARE(pcie->points.front().memory_bytes, nvlink->points.front().memory_bytes);
    // Less than twice the time at the fast end, more than five times at the least memory: links are what small plans
    // use.
    const double fast = pcie->points.back().time_s / nvlink->points.back().time_s;
    const double small = pcie->points.front().time_s / nvlink->points.front().time_s;
    QVERIFY2(fast > 1.5 && fast < 2.3, qPrintable(QString::number(fast)));
    QVERIFY2(small > 4, qPrintable(QString::number(small)));
    // Slow links go on paying for memory where fast ones have stopped: most of what they can reach comes later.
    const auto near_pcie = near_best_of_shape(*pcie), near_nvlink = near_best_of_shape(*nvlink);
    QVERIFY(near_pcie && near_nvlink);
    QVERIFY2(static_cast<double>(near_pcie->memory_bytes) > 1.1 * static_cast<double>(near_nvlink->memory_bytes),
             qPrintable(QString::number(gib(near_pcie->memory_bytes))));
  }

  /// The session's own scenario is the study's batch; placement_study_test.cpp has rows of its notes' tables.
  void batch_sizes_of_the_pardnn_study() {
    const StudyScenario own = scenarios_of("pardnn-batches").front();
    QCOMPARE(own.scenario->cluster->devices(), 16);
    const auto ours = searched(own, "pardnn"), one = searched(own, "single-device");
    const auto best = ours->fastest_that_fits();
    QVERIFY(best && !one->points.front().fits);
    QVERIFY2(near(ours->points[*best].time_s, 32.4, 0.4), qPrintable(QString::number(ours->points[*best].time_s)));
    const auto mesh = searched(own, "mesh-tensorflow");
    const auto fastest = mesh->fastest_that_fits();
    QVERIFY(fastest && near(mesh->points[*fastest].time_s, 17.9, 0.2));
  }

  /// Both tables of the notes, and what they say of data parallelism, are the answers that came with the program.
  void notes_of_the_pardnn_study_are_its_answers() {
    const auto study = app::load_batch_study();
    QVERIFY(study.has_value());
    const QString notes = QString::fromStdString(session_of("pardnn-batches").notes);
    const QStringList tables = notes.split(QStringLiteral("```"));
    QCOMPARE(tables.size(), qsizetype(5));
    int compared = 0;
    for (const auto& [table, graph] : {std::pair(tables[1], std::string()), {tables[3], std::string("whole-layers")}})
      for (const StudiedNetwork& network : study->networks) {
        const QStringList lines = table.split(u'\n').filter(
            QRegularExpression(u'^' + QString::fromStdString(network.title) + QStringLiteral(" ")));
        QCOMPARE(lines.size(), qsizetype(1));
        auto cells =
            QRegularExpression(QStringLiteral("(none|\\d+)/(-|\\d+)(?: +\u00d7([0-9.]+))?")).globalMatch(lines[0]);
        const auto ups = speed_ups(*study, network.model, study->methods.front(), graph, false);
        for (std::size_t i = 0; i < study->devices.size(); ++i, ++compared) {
          QVERIFY(cells.hasNext());
          const auto cell = cells.next();
          StudyCell asked;
          asked.model = network.model, asked.devices = study->devices[i];
          asked.method = study->methods.front(), asked.graph = graph;
          const StudyCell* answer = study->find(asked);
          QVERIFY(answer);
          QCOMPARE(cell.captured(1), answer->batch > 0 ? QString::number(answer->batch) : QStringLiteral("none"));
          QCOMPARE(cell.captured(2), network.reported[i] > 0 ? QString::number(network.reported[i]) : QString("-"));
          QCOMPARE(cell.captured(3), answer->batch > 0 ? QString::number(ups[i], 'f', 2) : QString());
        }
      }
    QCOMPARE(compared, 100);
    for (const bool at_reported : {true, false})
      for (const StudyStanding& row : standings(*study, {}, at_reported)) {
        if (!row.method.starts_with("data-parallel") && row.method != "mesh-tensorflow") continue;
        QVERIFY(notes.contains(QStringLiteral("%1 times").arg(*row.median_speed, 0, 'f', 2)));
        if (!row.method.starts_with("data-parallel")) continue;
        QVERIFY2(notes.contains(QStringLiteral("in %1 of %2").arg(row.does_not_fit).arg(row.cells)),
                 row.method.c_str());
      }
  }

  void devices_needed_by_each_method() {
    for (const char* file : {"parallelism-transformer", "parallelism-wide-resnet"}) {
      const StudyScenario own = scenarios_of(file).front();
      QCOMPARE(fewest(own, "data-parallel"), 16);
      QCOMPARE(fewest(own, "ft"), 8);
      QCOMPARE(fewest(own, "optcnn"), 8);  // 16 in the paper; the notes say why
      QVERIFY(time_on(own, "ft", 16) < time_on(own, "ft", 8));
      QVERIFY(time_on(own, "ft", 8) < INFINITY && time_on(own, "ft", 4) == INFINITY);
    }
  }
};

QTEST_APPLESS_MAIN(StudiesTest)
#include "studies_test.moc"
