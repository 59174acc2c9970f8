// SPDX-License-Identifier: Apache-2.0
// How good placements are, on measured and published graphs, with and without a limit of memory: no makespan may get
// longer by more than a hundredth than it was when the row was recorded. One that got shorter is recorded anew.
#include <QtTest>

#include "core/import/task_graph.h"
#include "core/search/placement_registry.h"
#include "test_data.h"

using namespace turnpoint;

namespace {

constexpr double kLonger = 1.01;

struct Recorded {
  const char* file;  ///< below placement/ of the data folder
  const char* method;
  std::int64_t limit;  ///< bytes per device; 0: none. Where there is one, it is three quarters of the free peak
  double makespan_s;
  bool fits;
};

constexpr const char *kGnmt = "pipedream/gnmt.graph.txt", *kNasnet = "pipedream/nasnetamobile.graph.txt",
                     *kResnet = "pipedream/resnet50.graph.txt", *kVgg = "pipedream/vgg16.graph.txt",
                     *kBert3 = "dnn-partitioning/throughput-inputs/OperatorGraphs/bert_l-3_training.json",
                     *kBert6 = "dnn-partitioning/latency-inputs/OperatorGraphs/bert_l-6_inference.json";

// On four devices.
const Recorded kRecorded[] = {
    {kGnmt, "pardnn", 0, 0.089022, true},
    {kGnmt, "heft", 0, 0.095031056, true},
    {kGnmt, "pardnn-published", 0, 0.114583992, true},
    {kGnmt, "layered-expert", 0, 0.186500376, true},
    {kGnmt, "pardnn", 778853568, 0.114577624, true},
    {kGnmt, "pardnn-published", 778853568, 0.127318232, true},
    {kNasnet, "pardnn", 0, 0.599843984, true},
    {kNasnet, "heft", 0, 0.677097888, true},
    {kNasnet, "pardnn-published", 0, 3.061764432, true},
    {kNasnet, "layered-expert", 0, 1.292536744, true},
    {kNasnet, "pardnn", 10572072489, 0.959142728, true},
    {kResnet, "pardnn", 0, 0.462381, true},
    {kResnet, "heft", 0, 0.462381, true},
    {kResnet, "pardnn", 14558217339, 2.440885736, true},
    {kResnet, "pardnn-published", 14558217339, 7.415048688, true},
    {kVgg, "pardnn", 0, 0.690507, true},
    {kVgg, "layered-expert", 0, 6.445092088, true},
    {kBert3, "pardnn", 0, 122.987223846, true},
    {kBert3, "heft", 0, 134.886299772, true},
    {kBert3, "pardnn-published", 0, 121.789499702, true},
    {kBert3, "layered-expert", 0, 530.429507196, true},
    {kBert3, "pardnn", 2473794426, 124.969297072, true},
    {kBert3, "pardnn-published", 2473794426, 488.620761279, true},
    // Its file states the devices' memory, which HEFT does not know of.
    {kBert6, "pardnn", 0, 75.980695781, true},
    {kBert6, "heft", 0, 76.434772358, false},
};

}  // namespace

class PlacementQualityTest : public QObject {
  Q_OBJECT

 private slots:
  void no_placement_got_worse_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < std::size(kRecorded); ++i) {
      const Recorded& row = kRecorded[i];
      QTest::addRow("%s by %s%s", QString(row.file).section('/', -1).toUtf8().constData(), row.method,
                    row.limit ? ", limited" : "")
          << static_cast<int>(i);
    }
  }

  void no_placement_got_worse() {
    QFETCH(int, row);
    REQUIRE_DATA(data);
    const Recorded& recorded = kRecorded[row];
    const auto graph = open_task_graph((data / "placement" / recorded.file).string());
    QVERIFY2(graph.has_value(), graph ? "" : graph.error().message().c_str());
    placement::PlacementRequest request;
    request.devices = 4;
    if (recorded.limit) request.memory_limit = recorded.limit;
    const auto method = placement::find_placement_method(recorded.method);
    QVERIFY(method.has_value());
    const auto placed = placement::run_placement(**method, **graph, request, {});
    QVERIFY2(placed.has_value(), placed ? "" : placed.error().message().c_str());
    QCOMPARE(placed->fits(), recorded.fits);
    QVERIFY2(placed->makespan_s <= recorded.makespan_s * kLonger,
             qPrintable(QString("%1 s, recorded %2 s").arg(placed->makespan_s).arg(recorded.makespan_s)));
  }
};

QTEST_APPLESS_MAIN(PlacementQualityTest)
#include "placement_quality_test.moc"
