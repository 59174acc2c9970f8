// SPDX-License-Identifier: Apache-2.0
// The real window on the real core, offscreen, 2 x 8 V100:
//   start_to_first_chart   process start (fork to first painted curve of the sample), median; `cold` drops the page
//   cache
//                          before each start and needs root
//   MODEL/slider_to_curve  one mouse move on the inter-node bandwidth slider until the new curve is painted; read `p95`
//   MODEL/interface_thread the longest that an event waited for the interface thread, over opening the model,
//                          its exact search, a drag and the exact search after it; standard error names its parts
//   tasks-N/open_to_graph  a task graph from its file to its painted picture; counters: the first marker in the chart,
//                          until all is settled, the longest that an event waited till then and during a drag
//   build/bench/window_bench [--benchmark_filter=...]
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QMetaEnum>
#include <QProcess>
#include <QTemporaryDir>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "app/document.h"
#include "app/main_window.h"
#include "app/tabs/graph_tab.h"
#include "bench/opened_window.h"
#include "core/plan_io/task_graph_json.h"
#include "simulation/layered_dag.h"
#include "views/frontier/frontier_chart.h"
#include "views/graph/task_graph_view.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/slider_row.h"
#include "views/scenario/what_if_slider.h"

namespace {

using namespace turnpoint;
using bench::kLimit_ms;
using bench::Opened;
using bench::wait_for;

double wall_s() {
  timeval now{};
  gettimeofday(&now, nullptr);
  return static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_usec);
}

/// Another thread knocks every two milliseconds; how long a knock waits is how long a key press would have waited.
class TimedApplication : public QApplication {
 public:
  TimedApplication(int& argc, char** argv) : QApplication(argc, argv) { clock_.start(); }

  void watch() {
    longest_wait_ms = 0;
    knocker_ = std::jthread([this](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(2)))
        if (!knocking_.exchange(true))
          QMetaObject::invokeMethod(
              this, [this, knocked = now_ms()] { answer(knocked); }, Qt::QueuedConnection);
    });
  }
  void stop_watching() {
    knocker_ = {};
    processEvents();
  }

  bool notify(QObject* receiver, QEvent* event) override {
    if (depth_ > 0) return QApplication::notify(receiver, event);
    const QByteArray name = QByteArray(receiver->metaObject()->className()) + ' ' +
                            QMetaEnum::fromType<QEvent::Type>().valueToKey(event->type());
    const double begin = now_ms();
    ++depth_;
    const bool taken = QApplication::notify(receiver, event);
    --depth_;
    since_answer_[name] += now_ms() - begin;
    return taken;
  }

  /// What the thread did while the knock that waited longest was waiting: "QCustomPlot MetaCall 12.1 ms, ...".
  std::string explain() const {
    std::vector<std::pair<double, QByteArray>> parts;
    for (const auto& [name, ms] : in_longest_wait_) parts.push_back({ms, name});
    std::sort(parts.rbegin(), parts.rend());
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 4); ++i)
      text += fmt::format("{}{} {:.1f} ms", i ? ", " : "", parts[i].second.toStdString(), parts[i].first);
    return text;
  }

  double longest_wait_ms = 0;

 private:
  double now_ms() const { return static_cast<double>(clock_.nsecsElapsed()) / 1e6; }
  void answer(double knocked) {
    knocking_ = false;
    if (now_ms() - knocked > longest_wait_ms) {
      longest_wait_ms = now_ms() - knocked;
      in_longest_wait_ = since_answer_;
    }
    since_answer_.clear();
  }

  QElapsedTimer clock_;
  std::map<QByteArray, double> since_answer_, in_longest_wait_;
  std::atomic<bool> knocking_ = false;
  std::jthread knocker_;
  int depth_ = 0;
};

TimedApplication& application() { return *static_cast<TimedApplication*>(QApplication::instance()); }

/// A child: prints the wall time at which the sample's first curve was painted.
int first_chart() {
  Opened opened;
  opened.window.opener().open_scenario({}, {}, 0);
  if (!wait_for([&] { return opened.watch.shown(); })) return 1;
  std::printf("%.6f\n", wall_s());
  std::fflush(stdout);
  _exit(0);
}

bool drop_page_cache() {
  sync();
  const int file = open("/proc/sys/vm/drop_caches", O_WRONLY);
  if (file < 0) return false;
  const bool done = write(file, "3", 1) == 1;
  close(file);
  return done;
}

void start_to_first_chart(benchmark::State& state, bool cold) {
  for (auto _ : state) {
    if (cold && !drop_page_cache()) return state.SkipWithError("the page cache can only be dropped as root");
    QProcess child;
    const double begin = wall_s();
    child.start(QCoreApplication::applicationFilePath(), {QStringLiteral("--first-chart")});
    if (!child.waitForFinished(kLimit_ms) || child.exitCode() != 0)
      return state.SkipWithError("no chart within a minute");
    state.SetIterationTime(child.readAllStandardOutput().trimmed().toDouble() - begin);
  }
}

using OpenedPtr = std::shared_ptr<std::unique_ptr<Opened>>;

void slider_to_curve(benchmark::State& state, const OpenedPtr& opened, const std::string& model, int& step) {
  for (auto _ : state) {
    if (!*opened) {
      *opened = std::make_unique<Opened>();
      if (!(*opened)->open(model)) return state.SkipWithError("no exact frontier within a minute");
      (*opened)->mouse(QEvent::MouseButtonPress, 1);
    }
    QElapsedTimer clock;
    clock.start();
    (*opened)->mouse(QEvent::MouseMove, std::exp2(3 * std::sin(0.37 * ++step)));
    if (!wait_for([&] { return (*opened)->watch.shown(); })) return state.SkipWithError("no curve within a minute");
    state.SetIterationTime(static_cast<double>(clock.nsecsElapsed()) / 1e9);
  }
}

void interface_thread(benchmark::State& state, const std::string& model) {
  for (auto _ : state) {
    Opened opened;
    application().processEvents();
    application().watch();
    if (!opened.open(model)) return state.SkipWithError("no exact frontier within a minute");
    opened.mouse(QEvent::MouseButtonPress, 1);
    for (int step = 1; step <= 20; ++step) {
      opened.mouse(QEvent::MouseMove, std::exp2(0.1 * step));
      QElapsedTimer clock;
      clock.start();
      wait_for([&] { return clock.elapsed() > 20; });
    }
    opened.mouse(QEvent::MouseButtonRelease, 4);
    if (!wait_for([&] { return opened.window.work().settled(); })) return state.SkipWithError("did not come to rest");
    application().stop_watching();
    state.SetIterationTime(application().longest_wait_ms / 1e3);
    std::fprintf(stderr, "%s: an event waited %.1f ms: %s\n", model.c_str(), application().longest_wait_ms,
                 application().explain().c_str());
  }
}

/// A task graph of the study's largest size, opened as a file: until the graph itself is painted, until the first
/// marker stands in the chart, and how long an event waited meanwhile.
void open_tasks(benchmark::State& state, const std::string& path) {
  for (auto _ : state) {
    Opened opened;
    app::MainWindow& window = opened.window;
    views::TaskGraphView* graph = window.findChild<views::TaskGraphView*>();
    bool ready = false;
    QObject::connect(graph, &views::TaskGraphView::ready, graph, [&ready] { ready = true; });
    application().processEvents();
    application().watch();
    QElapsedTimer clock;
    clock.start();
    window.opener().open_path(QString::fromStdString(path));
    double graph_s = 0, marker_s = 0;
    const auto look = [&] {
      const double now = static_cast<double>(clock.nsecsElapsed()) / 1e9;
      if (graph_s == 0 && ready && !graph->busy()) graph_s = now;
      if (marker_s == 0 && opened.watch.shown()) marker_s = now;
      return graph_s > 0 && marker_s > 0;
    };
    if (!wait_for(look)) return state.SkipWithError("nothing painted within a minute");
    if (!wait_for([&] { return window.work().settled(); })) return state.SkipWithError("did not come to rest");
    application().stop_watching();
    const double opening_wait = application().longest_wait_ms;
    state.SetIterationTime(graph_s);
    state.counters["marker_s"] = marker_s;
    state.counters["settled_s"] = static_cast<double>(clock.nsecsElapsed()) / 1e9;
    state.counters["longest_wait_ms"] = opening_wait;
    std::fprintf(stderr, "tasks: graph %.2f s, first marker %.2f s, an event waited %.1f ms: %s\n", graph_s, marker_s,
                 opening_wait, application().explain().c_str());
    // A dragged slider simulates the placement that is there, and shows its schedule in every view.
    application().watch();
    opened.mouse(QEvent::MouseButtonPress, 1, "device-speed-scale");
    for (int step = 1; step <= 20; ++step) {
      opened.mouse(QEvent::MouseMove, std::exp2(0.1 * step), "device-speed-scale");
      QElapsedTimer frame;
      frame.start();
      wait_for([&] { return frame.elapsed() > 50; });
    }
    opened.mouse(QEvent::MouseButtonRelease, 4, "device-speed-scale");
    if (!wait_for([&] { return window.work().settled(); })) return state.SkipWithError("did not come to rest");
    application().stop_watching();
    state.counters["drag_wait_ms"] = application().longest_wait_ms;
    std::fprintf(stderr, "tasks: while a slider was dragged an event waited %.1f ms: %s\n",
                 application().longest_wait_ms, application().explain().c_str());
  }
}

double p95(const std::vector<double>& values) {
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, sorted.size() * 95 / 100)];
}

std::string data_file(const std::string& name) {
  const char* folder = std::getenv("TURNPOINT_DATA");
  return (folder ? std::string(folder) : std::string("../shared/data")) + "/" + name;
}

benchmark::internal::Benchmark* prepare(benchmark::internal::Benchmark* made, int repetitions) {
  return made->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->Repetitions(repetitions)
      ->ReportAggregatesOnly()
      ->UseManualTime();
}

}  // namespace

int main(int argc, char** argv) {
  if (!std::getenv("QT_QPA_PLATFORM")) setenv("QT_QPA_PLATFORM", "offscreen", 1);
  int qt_argc = 1;
  TimedApplication app(qt_argc, argv);
  std::setlocale(LC_NUMERIC, "C");
  if (argc > 1 && std::string(argv[1]) == "--first-chart") return first_chart();

  prepare(benchmark::RegisterBenchmark("start_to_first_chart/warm", start_to_first_chart, false), 5);
  prepare(benchmark::RegisterBenchmark("start_to_first_chart/cold", start_to_first_chart, true), 5);
  const std::pair<std::string, std::string> models[] = {
      {"transformer-s", "builtin:transformer-s"},
      {"vit-b-16", data_file("onnx/exported/vit_b_16_ext.onnx")},
      {"resnet-50", data_file("onnx/exported/resnet50_train_inputs.onnx")},
      {"gpt2", "builtin:gpt2"},
      {"rnn", "builtin:rnn"},
      {"wide-resnet", "builtin:wide-resnet"},
      {"transformer", "builtin:transformer"},
      {"vgg16", "builtin:vgg16"},
  };
  for (const auto& [name, model] : models) {
    if (!model.starts_with("builtin:") && !std::filesystem::exists(model)) {
      std::fprintf(stderr, "%s: %s is absent (set TURNPOINT_DATA), left out\n", name.c_str(), model.c_str());
      continue;
    }
    prepare(benchmark::RegisterBenchmark((name + "/interface_thread").c_str(), interface_thread, model), 3);
    const auto opened = std::make_shared<std::unique_ptr<Opened>>();
    const auto step = std::make_shared<int>(0);
    prepare(benchmark::RegisterBenchmark((name + "/slider_to_curve").c_str(),
                                         [opened, step, model](benchmark::State& state) {
                                           slider_to_curve(state, opened, model, *step);
                                           if (*step >= 41) opened->reset();
                                         }),
            41)
        ->ComputeStatistics("p95", p95);
  }
  QTemporaryDir folder;
  for (const std::uint32_t tasks : {11'744u, 187'742u}) {
    const std::string path = folder.filePath(QStringLiteral("tasks%1.json").arg(tasks)).toStdString();
    std::ofstream(path) << write_task_graph(*test::layered_graph(test::layered_dag(tasks, 1)));
    prepare(benchmark::RegisterBenchmark(fmt::format("tasks-{}/open_to_graph", tasks).c_str(), open_tasks, path), 3);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
