// SPDX-License-Identifier: Apache-2.0
#include "app/unattended.h"

#include <QApplication>
#include <cstdio>

#include "app/main_window.h"
#include "core/export/format.h"

namespace turnpoint::app {

namespace {
/// After the last task the views still lay out and paint; a layout process may be under way.
constexpr int kPoll_ms = 50, kQuiet_ms = 700;
constexpr qint64 kExactWithin_ms = 60'000, kGiveUpAfter_ms = 300'000;
}  // namespace

Unattended::Unattended(MainWindow& window, QString screenshot, QString plan, QObject* parent)
    : QObject(parent), window_(window), screenshot_(std::move(screenshot)), plan_(std::move(plan)) {
  clock_.start();
  connect(&poll_, &QTimer::timeout, this, &Unattended::look);
  poll_.start(kPoll_ms);
}

void Unattended::look() {
  const auto* message = window_.voice().bar().current();
  if (message && message->kind == views::Message::Kind::error && !window_.work().settled()) {
    std::fprintf(
        stderr, "turnpoint: %s\n",
        qPrintable(message->where.isEmpty() ? message->what : message->where + QStringLiteral(": ") + message->what));
    exit_code_ = 3;
    finish();
    return;
  }
  if (clock_.elapsed() > kGiveUpAfter_ms) {
    std::fputs("turnpoint: no frontier within five minutes\n", stderr);
    exit_code_ = 5;
    finish();
    return;
  }
  // A first frontier is what was asked for; where the exact one takes long, the coarse one is shown as what it is.
  const bool enough = clock_.elapsed() > kExactWithin_ms && window_.work().loader.picked_plan();
  if (!window_.work().settled() && !enough) {
    quiet_.invalidate();
    return;
  }
  if (!quiet_.isValid()) quiet_.start();
  if (quiet_.elapsed() >= kQuiet_ms) finish();
}

void Unattended::finish() {
  poll_.stop();
  if (!plan_.isEmpty() && exit_code_ == 0) {
    const ExportSource source{{}, window_.work().loader.result(), window_.work().loader.index()};
    const auto written = export_to_file(*find_format("json"), source, plan_.toStdString());
    if (!written) {
      std::fprintf(stderr, "turnpoint: %s\n", written.error().message().c_str());
      exit_code_ = 3;
    }
  }
  if (!screenshot_.isEmpty() && !window_.grab().save(screenshot_)) {
    std::fprintf(stderr, "turnpoint: %s: the picture cannot be written\n", qPrintable(screenshot_));
    exit_code_ = 3;
  }
  window_.close();
  QApplication::exit(exit_code_);
}

}  // namespace turnpoint::app
