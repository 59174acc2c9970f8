// SPDX-License-Identifier: Apache-2.0
// The real window on the real core, and when its curve has been painted.
#pragma once

#include <QApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QMouseEvent>
#include <QTemporaryDir>
#include <QTimer>
#include <functional>
#include <string>

#include "app/app_settings.h"
#include "app/core_backend.h"
#include "app/document.h"
#include "app/main_window.h"
#include "app/opener.h"
#include "app/opener.h"
#include "app/sessions.h"
#include "views/frontier/frontier_chart.h"
#include "views/scenario/scenario_panel.h"
#include "views/scenario/slider_row.h"
#include "views/scenario/what_if_slider.h"

namespace turnpoint::bench {

inline constexpr int kLimit_ms = 60'000;

/// Runs the event loop as the program does, until `done` holds after an event.
inline bool wait_for(const std::function<bool()>& done) {
  QEventLoop loop;
  QTimer limit, look;
  limit.setSingleShot(true);
  QObject::connect(&limit, &QTimer::timeout, &loop, [&] { loop.exit(1); });
  QObject::connect(&look, &QTimer::timeout, &loop, [&] {
    if (done()) loop.exit(0);
  });
  limit.start(kLimit_ms);
  look.start(1);
  return done() || loop.exec() == 0;
}

/// Notices when the chart has painted a curve of the present scenario: a replot paints and is counted after that, but a
/// paint event may also come from elsewhere and show the old curve again.
class CurveWatch : public QObject {
 public:
  explicit CurveWatch(app::MainWindow& window) : window_(window), chart_(window.findChild<views::FrontierChart*>()) {
    chart_->findChild<QWidget*>(QString(), Qt::FindDirectChildrenOnly)->installEventFilter(this);
  }
  bool shown() {
    if (chart_->replots() != replots_) painted_ = painting_;
    replots_ = chart_->replots();
    return painted_ && painted_ == window_.work().document.scenario().get();
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Paint) {
      const views::ChartSeries* subject = chart_->data().subject();
      painting_ = subject && subject->result ? subject->result->scenario.get() : nullptr;
    }
    return QObject::eventFilter(watched, event);
  }

 private:
  app::MainWindow& window_;
  views::FrontierChart* chart_;
  int replots_ = 0;
  const Scenario *painting_ = nullptr, *painted_ = nullptr;
};

struct Opened {
  QTemporaryDir folder;
  app::AppSettings settings{folder.filePath(QStringLiteral("settings.ini"))};
  app::CoreBackend backend;
  app::MainWindow window{backend, settings};
  CurveWatch watch{window};

  Opened() {
    window.resize(1600, 1000);
    window.show();
  }
  bool open(const std::string& model) {
    window.opener().open_scenario(model, "v100-16gb-2x8", 0);
    return wait_for([this] { return window.work().settled() && watch.shown(); });
  }
  void mouse(QEvent::Type type, double factor, const char* key = "inter-bandwidth-scale") {
    views::WhatIfSlider* slider =
        window.findChild<views::ScenarioPanel*>()->slider_row(QString::fromLatin1(key))->slider();
    const QPointF at(slider->handle_x(factor), slider->height() / 2);
    const auto button = type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton;
    const auto buttons = type == QEvent::MouseButtonRelease ? Qt::NoButton : Qt::LeftButton;
    QMouseEvent event(type, at, slider->mapToGlobal(at), button, buttons, Qt::NoModifier);
    QApplication::sendEvent(slider, &event);
  }
};

}  // namespace turnpoint::bench
