// SPDX-License-Identifier: Apache-2.0
// A real window on the fake backend, shown offscreen.
#pragma once

#include <QApplication>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "app/app_settings.h"
#include "app/document.h"
#include "app/plan_loader.h"
#include "app/search_runner.h"
#include "app/task_manager.h"
#include "fake_backend.h"
#include "sanitized.h"
#include "views/common/message_bar.h"
#include "views/frontier/frontier_chart.h"
#include "views/plan/plan_panel.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/slider_row.h"
#include "views/scenario/what_if_slider.h"
#include "window_parts.h"

namespace turnpoint::test {

class WindowFixture {
 public:
  WindowFixture() : settings(folder.filePath(QStringLiteral("settings.ini"))) {
    FakeWorld& world = fake_world();
    world.coarse_ms = 5, world.exact_ms = 20, world.other_ms = 10, world.bind_ms = 0, world.plan_ms = 0;
    world.coarse_runs = world.exact_runs = world.other_runs = world.cancelled_runs = 0;
    world.fail_search = false;
    window = std::make_unique<app::MainWindow>(backend, settings);
    window->resize(1600, 1000);
    window->show();
    (void)QTest::qWaitForWindowExposed(window.get());
  }

  /// Opens the sample scenario and waits for its exact frontier and plan.
  bool open() {
    window->opener().open_scenario("builtin:transformer-s", "v100-16gb-2x8", 0);
    return settle();
  }
  bool settle() {
    return QTest::qWaitFor([&] { return window->work().settled(); }, 60000 * test::kSanitizerFactor);
  }
  app::Document& document() { return window->work().document; }
  app::SearchRunner& runner() { return window->work().runner; }
  views::FrontierChart& chart() { return *part<views::FrontierChart>(window); }
  QWidget* plot() {
    return part<views::FrontierChart>(window)->findChild<QWidget*>(QString(), Qt::FindDirectChildrenOnly);
  }
  views::SliderRow* row(const char* key) {
    return part<views::ScenarioPanel>(window)->slider_row(QString::fromLatin1(key));
  }
  const Settings& scenario_settings() { return document().scenario()->settings; }

  QTemporaryDir folder;
  FakeBackend backend;
  app::AppSettings settings;
  std::unique_ptr<app::MainWindow> window;
};

}  // namespace turnpoint::test
