// SPDX-License-Identifier: Apache-2.0
// ParDNN on every workload in shared/data/placement: "do not split" wins where it is best, what fits one device comes
// out feasible and no slower than there, and the latency inputs are placed within their memory.
#include <QtTest>
#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/import/task_graph.h"
#include "core/search/placement_registry.h"
#include "test_data.h"

using namespace turnpoint;
using namespace turnpoint::placement;

namespace {

SimulatedPlacement place(const char* name, const TaskGraph& graph, const PlacementRequest& request) {
  auto result = run_placement(**find_placement_method(name), graph, request, {});
  if (!result) qFatal("%s: %s", name, result.error().message().c_str());
  return std::move(*result);
}

/// Files of the folder and those below, task graphs only, sorted.
std::vector<std::filesystem::path> workloads(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().string().find("human-experts") == std::string::npos)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

class PlacementWorkloadsTest : public QObject {
  Q_OBJECT

 private slots:
  void never_slower_than_one_device_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<int>("devices");
    QTest::addColumn<bool>("throughput");
    const auto data = test::data_folder();
    if (data.empty()) {
      QTest::newRow("no data") << "" << 0 << false;
      return;
    }
    for (const auto& file : workloads(data / "placement"))
      for (const int devices : {2, 6})
        for (const bool throughput : {false, true}) {
          // Loads are what the throughput inputs are for.
          if (throughput && file.string().find("throughput-inputs") == std::string::npos) continue;
          QTest::addRow("%s on %d, %s", file.filename().c_str(), devices, throughput ? "max-load" : "makespan")
              << QString::fromStdString(file.string()) << devices << throughput;
        }
  }
  void never_slower_than_one_device() {
    QFETCH(QString, file);
    QFETCH(int, devices);
    QFETCH(bool, throughput);
    if (file.isEmpty()) QSKIP("data folder absent: set TURNPOINT_DATA to run this test");
    const auto graph = open_task_graph(file.toStdString());
    QVERIFY2(graph.has_value(), graph ? "" : graph.error().message().c_str());
    PlacementRequest request;
    request.devices = std::min(std::uint32_t(devices), (*graph)->device_limit());
    request.objective = throughput ? placement::Objective::max_load : placement::Objective::makespan;
    const SimulatedPlacement one = place("single-device", **graph, request), ours = place("pardnn", **graph, request);
    QVERIFY(ours.fits() || !one.fits());
    const auto figure = throughput ? &SimulatedPlacement::max_load_s : &SimulatedPlacement::makespan_s;
    if (one.fits()) QVERIFY2(ours.*figure <= one.*figure, qPrintable(QString::number(ours.*figure / one.*figure)));
  }

  void latency_inputs_are_feasible() {
    REQUIRE_DATA(data);
    int placed = 0;
    for (const auto& file : workloads(data / "placement/dnn-partitioning/latency-inputs")) {
      const auto graph = open_task_graph(file.string());
      QVERIFY2(graph.has_value(), graph ? "" : graph.error().message().c_str());
      PlacementRequest request;
      request.devices = (*graph)->intended_devices;
      QVERIFY2(request.devices > 1, file.c_str());
      QVERIFY(request.limited(**graph));
      const SimulatedPlacement result = place("pardnn", **graph, request);
      QVERIFY2(result.fits(), qPrintable(QString::fromStdString(
                                  file.string() + (result.shortage ? ": " + describe(*result.shortage) : ""))));
      for (std::uint32_t d = 0; d < request.devices; ++d) QVERIFY(result.peak_bytes[d] <= request.limit_of(**graph, d));
      ++placed;
    }
    QCOMPARE(placed, 5);
  }
};

QTEST_APPLESS_MAIN(PlacementWorkloadsTest)
#include "placement_workloads_test.moc"
