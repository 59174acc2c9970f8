// SPDX-License-Identifier: Apache-2.0
// A real window on the real core, shown offscreen.
#pragma once

#include <QAction>
#include <QApplication>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <memory>
#include <string>

#include "app/app_settings.h"
#include "app/core_backend.h"
#include "app/document.h"
#include "app/search_runner.h"
#include "core/plan_io/task_graph_json.h"
#include "core/schedule/plan_schedule.h"
#include "sanitized.h"
#include "search/small_graphs.h"
#include "views/common/selection_model.h"
#include "views/frontier/frontier_chart.h"
#include "window_parts.h"

namespace turnpoint::test {

/// The window on the real core.
struct Real {
  Real() : settings(folder.filePath(QStringLiteral("settings.ini"))) {
    window = std::make_unique<app::MainWindow>(backend, settings);
    window->resize(1600, 1000);
    window->show();
    (void)QTest::qWaitForWindowExposed(window.get());
  }
  bool settle() {
    return QTest::qWaitFor([&] { return window->work().settled(); }, 60000 * test::kSanitizerFactor);
  }
  bool open(const QString& path) {
    window->opener().open_path(path);
    return settle();
  }
  /// A random graph without a word about devices or memory.
  QString random_graph(std::uint64_t seed, std::size_t tasks) {
    const QString path = folder.filePath(QStringLiteral("random%1.json").arg(seed));
    std::ofstream(path.toStdString()) << write_task_graph(*random_task_graph(seed, tasks));
    return path;
  }
  template <class Widget>
  Widget* child(const char* name) {
    return window->findChild<Widget*>(QString::fromLatin1(name));
  }
  /// The fastest that fits, else the fastest.
  const ResultPoint& point(const std::string& method) {
    const Result& result = *window->work().runner.find(method)->result;
    return result.points[result.fastest_that_fits().value_or(result.points.size() - 1)];
  }
  void click(const std::string& method) {
    auto* plot = part<views::FrontierChart>(window)->findChild<QWidget*>(QString(), Qt::FindDirectChildrenOnly);
    QTest::mouseClick(plot, Qt::LeftButton, Qt::NoModifier,
                      part<views::FrontierChart>(window)->position_of(point(method)));
  }
  const SchedulePtr& schedule() { return window->work().document.selection().schedule(); }

  QTemporaryDir folder;
  app::CoreBackend backend;
  app::AppSettings settings;
  std::unique_ptr<app::MainWindow> window;
};

inline QAction* action(Real& real, const char* key) {
  return real.window->findChild<QAction*>(QString::fromLatin1(key));
}

/// Seconds of a step by the schedule of the plan; below zero: it has none.
inline double simulated_seconds(const Scenario& scenario, const Plan& plan) {
  const auto schedule = plan_schedule(scenario, plan);
  return schedule ? (*schedule)->makespan_s : -1;
}

}  // namespace turnpoint::test
