// SPDX-License-Identifier: Apache-2.0
// What a device runs as it becomes ready takes more memory than what it runs in the order of its list; `pardnn` never
// fits less for it.
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/search/pardnn/pardnn.h"
#include "core/search/placement_registry.h"
#include "core/simulation/simulator.h"
#include "search/placement_study.h"
#include "search/small_graphs.h"
#include "simulation/layered_dag.h"

using namespace turnpoint;
using placement::PlacementRequest;

namespace {

placement::PlacementMethod listed_method() {
  placement::PlacementMethod method;
  method.name = method.title = "listed";
  method.frontier = true;
  method.run = &pardnn::run_in_listed_orders;
  return method;
}

SimulatedPlacement run(const placement::PlacementMethod& method, const TaskGraph& graph,
                       const PlacementRequest& request) {
  RunContext context;
  context.threads = 1;
  auto placed = placement::run_placement(method, graph, request, context);
  if (!placed) qFatal("%s", placed.error().message().c_str());
  return std::move(*placed);
}

std::int64_t missing(const SimulatedPlacement& placed, std::int64_t limit) {
  std::int64_t bytes = 0;
  for (const std::int64_t peak : placed.peak_bytes) bytes += std::max<std::int64_t>(0, peak - limit);
  return bytes;
}

std::int64_t fullest(const TaskGraph& graph, const Placement& placement) {
  const auto simulation = simulate(graph, placement);
  if (!simulation) qFatal("%s", simulation.error().message().c_str());
  std::int64_t most = 0;
  for (const SimulatedDevice& device : simulation->devices) most = std::max(most, device.peak_bytes);
  return most;
}

/// Of all that a search met, the answer included.
std::int64_t least_memory(const TaskGraph& graph, const SimulatedPlacement& placed) {
  std::int64_t least = fullest(graph, placed.placement);
  for (const Placement& other : placed.others) least = std::min(least, fullest(graph, other));
  return least;
}

bool tells(const SimulatedPlacement& placed, const char* stage) {
  return std::any_of(placed.stages.begin(), placed.stages.end(), [&](const auto& one) { return one.name == stage; });
}

struct Compared {
  int cells = 0, fitting = 0, saved = 0;  ///< saved: by what stood in
};

/// At limits from what the listed orders meet without any down to what nothing fits.
void compare(const TaskGraph& graph, std::uint32_t devices, Compared& compared) {
  const auto& pardnn = **placement::find_placement_method("pardnn");
  PlacementRequest request;
  request.devices = devices;
  const std::int64_t least = least_memory(graph, run(listed_method(), graph, request));
  for (const double part : {1.0, 0.9, 0.8}) {
    request.memory_limit = std::max<std::int64_t>(1, std::int64_t(double(least) * part));
    const auto listed = run(listed_method(), graph, request), ours = run(pardnn, graph, request);
    QVERIFY(!listed.fits() || ours.fits());
    QVERIFY(missing(ours, request.memory_limit) <= missing(listed, request.memory_limit));
    ++compared.cells;
    compared.fitting += listed.fits();
    compared.saved += ours.fits() && tells(ours, "listed orders");
  }
}

}  // namespace

class ListedOrdersTest : public QObject {
  Q_OBJECT

 private slots:
  void never_fits_less_than_listed_orders() {
    Compared compared;
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
      compare(*test::random_task_graph(seed, 30 + seed), 2 + seed % 3, compared);
    qInfo("%d cells, %d of them fit in listed orders, %d only so", compared.cells, compared.fitting, compared.saved);
    QVERIFY(compared.fitting > 10 && compared.fitting < compared.cells && compared.saved > 0);
  }

  /// Rows of the ParDNN study, on two devices, where what runs as ready fits half of the batch alone.
  void batches_of_the_study_on_two_devices() {
    for (const auto& [name, batch] : {std::pair<const char*, std::int64_t>{"wrn-2", 32}, {"e3d-2", 4}}) {
      const auto& models = test::study_models();
      const auto model = std::find_if(models.begin(), models.end(), [&](const auto& m) { return m.name == name; });
      QVERIFY2(model != models.end(), name);
      const auto placed = test::place(*model, batch, 2, test::study_options());
      QVERIFY2(placed && placed->fits, name);
      QVERIFY2(placed->origin.find("run as ready") == std::string::npos, placed->origin.c_str());
    }
  }
};

QTEST_GUILESS_MAIN(ListedOrdersTest)
#include "listed_orders_test.moc"
