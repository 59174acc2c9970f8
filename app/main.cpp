// SPDX-License-Identifier: Apache-2.0
#include <QApplication>
#include <QIcon>
#include <QScreen>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "app/app_settings.h"
#include "app/core_backend.h"
#include "app/dock_layout.h"
#include "app/end_signals.h"
#include "app/main_window.h"
#include "app/opener.h"
#include "app/recovery.h"
#include "app/sessions.h"
#include "app/start_options.h"
#include "app/theme.h"
#include "app/unattended.h"
#include "app/window_size.h"

int main(int argc, char** argv) {
  using namespace turnpoint;
  const auto options = app::parse_start_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "turnpoint: %s\n", options.error().message().c_str());
    return 2;
  }
  if (options->stop) return 0;
  const bool unattended = !options->screenshot.empty() || !options->export_plan.empty();
  const bool display = std::getenv("DISPLAY") || std::getenv("WAYLAND_DISPLAY");
  if (unattended && !display && !std::getenv("QT_QPA_PLATFORM")) setenv("QT_QPA_PLATFORM", "offscreen", 1);
  if (!unattended && !display && !std::getenv("QT_QPA_PLATFORM")) {
    std::fputs("turnpoint: no display; use --screenshot FILE.png, or turnpoint-cli\n", stderr);
    return 5;
  }

  // CLI11 has read the arguments; Qt sees the program's name only, so that it does not take ours for its own.
  int qt_argc = 1;
  QApplication application(qt_argc, argv);
  std::setlocale(LC_NUMERIC, "C");  // QApplication took it from the environment; files need points
  QApplication::setApplicationName(QStringLiteral("turnpoint"));
  QApplication::setApplicationDisplayName(QStringLiteral("Turnpoint"));
  QApplication::setApplicationVersion(QStringLiteral("0.1.0"));
  QApplication::setDesktopFileName(QStringLiteral("org.turnpoint.Turnpoint"));
  QApplication::setWindowIcon(QIcon::fromTheme(QStringLiteral("turnpoint")));
  // A picture must not depend on what the user did last, nor change it.
  std::optional<QTemporaryDir> scratch;
  if (unattended) scratch.emplace();
  const auto settings = unattended
                            ? std::make_unique<app::AppSettings>(scratch->filePath(QStringLiteral("settings.ini")))
                            : std::make_unique<app::AppSettings>();
  const auto kept_theme = app::theme_of_key(settings->theme());
  if (options->dark || kept_theme)
    app::apply_theme(options->dark ? (*options->dark ? app::Theme::dark : app::Theme::light) : *kept_theme);
  const app::CoreBackend backend;
  app::MainWindow window(backend, *settings);
  const QSize asked = options->width > 0 ? QSize(options->width, options->height) : QSize();
  if (!unattended) {
    window.docks().set_most_width(std::max(window.screen()->availableGeometry().width(), asked.width()));
    app::place_first_window(window, asked);
  } else if (asked.isValid()) {
    window.resize(asked);  // a picture is as large as it is asked for, whatever the screen
  }
  const QString platform = QGuiApplication::platformName();
  window.sessions().set_asks_before_leaving(!unattended && platform != u"offscreen" && platform != u"minimal");
  if (!unattended)
    window.work().runner.keep_figures_in(QStandardPaths::writableLocation(QStandardPaths::CacheLocation) +
                                         QStringLiteral("/answers"));
  window.show();
  const QString path = QString::fromLocal8Bit(options->path.c_str());
  const bool is_session = path.endsWith(QStringLiteral(".turnpoint"));
  if (is_session)
    window.sessions().open(path);
  else if (!path.isEmpty() || !options->hardware.empty())
    window.opener().open_scenario(options->path, options->hardware, options->devices);
  else if (settings->opens_sample() || unattended)
    window.opener().open_scenario({}, {}, options->devices);

  std::optional<app::EndSignals> end_signals;
  if (!unattended) {
    end_signals.emplace();
    QObject::connect(&*end_signals, &app::EndSignals::ended, &window.sessions(), &app::Sessions::end_by_signal);
    if (options->autosave_s > 0) window.sessions().keep_recovery(app::recovery_folder(), 1000 * options->autosave_s);
  }

  std::unique_ptr<app::Unattended> automaton;
  if (unattended)
    automaton = std::make_unique<app::Unattended>(window, QString::fromLocal8Bit(options->screenshot.c_str()),
                                                  QString::fromLocal8Bit(options->export_plan.c_str()));
  return QApplication::exec();
}
