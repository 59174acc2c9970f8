// SPDX-License-Identifier: Apache-2.0
// Learning that begins with nothing.
#include <QtTest>

#include "core/search/placement_registry.h"
#include "core/search/trinity/trainer.h"
#include "search/small_graphs.h"

using namespace turnpoint;
using namespace turnpoint::trinity;

namespace {

constexpr std::uint32_t kParts = 8, kLayers = 24;

/// Layers that many parts of a batch go through, a second each, with tensors that take ten to send.
TaskGraphPtr layers_in_parts() {
  TaskGraphBuilder builder;
  for (std::uint32_t part = 0; part < kParts; ++part)
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      TaskGraphBuilder::Task task;
      task.name = "layer";
      task.kind = TaskKind::forward;
      task.time_s = 1;
      task.output_bytes = 1000;
      builder.add_task(task);
      if (layer > 0) builder.add_edge(part * kLayers + layer - 1, part * kLayers + layer);
    }
  builder.links.bandwidth = 100;
  return *builder.finish("layers in parts");
}

}  // namespace

class FromNothingTest : public QObject {
  Q_OBJECT

 private slots:
  /// Two stages are far better than one device, and devices at random far worse. Who begins with groups at random ends
  /// with one device, or next to it.
  void groups_begin_along_the_layers() {
    const TaskGraphPtr graph = layers_in_parts();
    const double one_device = kParts * kLayers;
    double along = 0, at_random = 0;
    for (const std::uint64_t seed : {1, 2, 3}) {
      placement::PlacementRequest request;
      request.devices = 2;
      request.seed = seed;
      for (const bool ordered : {true, false}) {
        Settings settings;
        settings.budget.calls = 600;
        settings.groups = 8;
        settings.ordered_groups = ordered;
        const auto learnt = learn(*graph, request, settings, Beginning(nullptr), {});
        QVERIFY2(learnt, learnt ? "" : learnt.error().what.c_str());
        (ordered ? along : at_random) += learnt->best.seconds / 3;
        if (ordered)
          QVERIFY2(learnt->best.seconds < 0.75 * one_device, qPrintable(QString::number(learnt->best.seconds)));
      }
    }
    QVERIFY2(at_random > 1.2 * along, qPrintable(QString("%1 s along, %2 s at random").arg(along).arg(at_random)));
  }

  void budgets_and_tolerances_of_zero() {
    for (const std::string method : {"trinity", "hierarchical"})
      for (const char* budget : {"calls=0", "iterations=0", "seconds=0", "calls=5:seconds=0", "seconds=-1"}) {
        const auto choice = placement::choose_placement_method(method + ":from=scratch:" + budget);
        const auto run = choice ? placement::run_of(*choice->method, choice->parameters)
                                : Expected<placement::PlacementMethod::Run>(choice.error());
        QVERIFY2(!run && run.error().code == ErrorCode::usage, budget);
        QVERIFY2(run.error().what.find('\n') == std::string::npos, run.error().what.c_str());
      }
    for (const char* tolerance : {"memory-tolerance=0", "communication-tolerance=0"})
      QVERIFY(!placement::run_of(**placement::find_placement_method("trinity"), tolerance));
    QVERIFY(placement::run_of(**placement::find_placement_method("trinity"), "seconds=0.5").has_value());
  }

  /// Four for each device, unless their number is said.
  void groups_follow_from_the_devices() {
    const TaskGraphPtr graph = layers_in_parts();
    placement::PlacementRequest request;
    request.devices = 2;
    const auto placed = [&](const char* parameters) {
      const auto found =
          placement::run_placement(**placement::find_placement_method("trinity"), *graph, request, {}, parameters);
      return found ? found->placement.order : std::vector<std::vector<TaskIndex>>();
    };
    const auto usual = placed("from=scratch:calls=64");
    QVERIFY(!usual.empty());
    QCOMPARE(placed("from=scratch:calls=64:groups=8"), usual);
    QVERIFY(placed("from=scratch:calls=64:groups=32") != usual);
  }
};

QTEST_APPLESS_MAIN(FromNothingTest)
#include "from_nothing_test.moc"
