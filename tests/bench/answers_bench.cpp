// SPDX-License-Identifier: Apache-2.0
// What going back costs, on the real window and the real core, offscreen:
//   undo_to_exact     an undo to a scenario that was searched before until its curve is painted, ms
//   session_to_curve  a session that carries its results, from its file to its painted curve, s
//   idle_share        processor time of the settled window over five seconds, % of a core
//   memory_50_models  resident memory at rest after 50 models, the first open again, against that after the first, MiB
//   build/bench/answers_bench [MODEL | memory]
#include <sys/resource.h>
#include <unistd.h>

#include <QEventLoop>
#include <QTimer>
#include <QUndoStack>
#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/search_runner.h"
#include "bench/opened_window.h"

namespace {

using namespace turnpoint;
using bench::Opened;
using bench::wait_for;

double processor_s() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

int failed(const char* what) {
  std::fprintf(stderr, "%s: no answer within a minute\n", what);
  return 1;
}

int undo_and_session(const std::string& model) {
  QTemporaryDir folder;
  const QString session = folder.filePath(QStringLiteral("s.turnpoint"));
  {
    Opened opened;
    if (!opened.open(model)) return failed("open");
    app::Document& document = opened.window.work().document;
    document.set_option("inter-bandwidth-scale", 0.5, 0);
    if (!wait_for([&] { return opened.window.work().settled(); })) return failed("edit");
    std::vector<double> undos;
    const int before = opened.window.work().runner.exact_started();
    for (int i = 0; i < 11; ++i) {
      QElapsedTimer clock;
      clock.start();
      if (i % 2 == 0)
        document.undo_stack().undo();
      else
        document.undo_stack().redo();
      if (!wait_for([&] { return opened.watch.shown() && opened.window.work().runner.up_to_date(); }))
        return failed("undo");
      undos.push_back(static_cast<double>(clock.nsecsElapsed()) / 1e6);
    }
    std::printf("undo_to_exact     %s  %.1f ms (largest %.1f, %d searches)\n", model.c_str(), median(undos),
                *std::max_element(undos.begin(), undos.end()), opened.window.work().runner.exact_started() - before);
    if (!wait_for([&] { return opened.window.work().settled(); })) return failed("undo");
    const double begin = processor_s();
    // A sleeping loop, so that the figure is the window's alone.
    QEventLoop pause;
    QTimer::singleShot(5000, &pause, &QEventLoop::quit);
    pause.exec();
    std::printf("idle_share        %s  %.1f %% of a core\n", model.c_str(), 100 * (processor_s() - begin) / 5);
    opened.window.sessions().save(session);
  }
  std::vector<double> openings;
  for (int i = 0; i < 5; ++i) {
    Opened opened;
    QApplication::processEvents();
    QElapsedTimer clock;
    clock.start();
    opened.window.sessions().open(session);
    if (!wait_for([&] { return opened.watch.shown() && opened.window.work().runner.up_to_date(); }))
      return failed("session");
    openings.push_back(static_cast<double>(clock.nsecsElapsed()) / 1e9);
    if (opened.window.work().runner.coarse_started() > 0)
      std::fprintf(stderr, "the session's results were not taken\n");
  }
  std::printf("session_to_curve  %s  %.2f s (largest %.2f; file %.0f KiB)\n", model.c_str(), median(openings),
              *std::max_element(openings.begin(), openings.end()),
              static_cast<double>(std::filesystem::file_size(session.toStdString())) / 1024);
  return 0;
}

/// Held at rest: what a search has freed is back at the system some seconds after it.
double settled_mib() {
  QEventLoop pause;
  QTimer::singleShot(8000, &pause, &QEventLoop::quit);
  pause.exec();
  return resident_mib();
}

// The first model is opened again at the end, so that the same is on the screen at both times.
int fifty_models() {
  Opened opened;
  const std::string first_model = "builtin:lenet?batch=256";
  if (!opened.open(first_model)) return failed("lenet");
  const double first = settled_mib();
  int count = 1;
  for (const int batch : {128, 64, 32, 512, 96, 48, 192, 384, 80, 256})
    for (const char* name : {"alexnet", "transformer-s", "vgg16", "rnn", "lenet"}) {
      const std::string model = "builtin:" + std::string(name) + "?batch=" + std::to_string(batch);
      if (model == first_model) continue;
      if (!opened.open(model)) return failed(name);
      ++count;
      if (std::getenv("TRACE")) std::fprintf(stderr, "%s: %.0f MiB\n", model.c_str(), resident_mib());
    }
  const double last = settled_mib();
  if (!opened.open(first_model)) return failed("lenet");
  const double again = settled_mib();
  std::printf(
      "memory_50_models  %.0f MiB after %d, the first open again; %.0f MiB after the first: x%.2f; %.0f MiB of answers "
      "kept; %.0f MiB with the last open\n",
      again, count, first, again / first, static_cast<double>(opened.window.work().runner.kept().bytes()) / (1 << 20),
      last);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (!std::getenv("QT_QPA_PLATFORM")) setenv("QT_QPA_PLATFORM", "offscreen", 1);
  int qt_argc = 1;
  QApplication app(qt_argc, argv);
  std::setlocale(LC_NUMERIC, "C");
  const std::string model = argc > 1 ? argv[1] : "builtin:transformer-s";
  if (model == "memory") return fifty_models();
  const int wrong = undo_and_session(model);
  return wrong ? wrong : fifty_models();
}
