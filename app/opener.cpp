// SPDX-License-Identifier: Apache-2.0
#include "app/opener.h"

#include <QAction>
#include <QFileInfo>
#include <QMimeData>
#include <QUrl>
#include <algorithm>
#include <utility>

#include "app/actions.h"
#include "app/app_settings.h"
#include "app/file_kind.h"
#include "app/sessions.h"
#include "app/start_page.h"
#include "app/tab.h"
#include "app/voice.h"
#include "core/cost/transformer_roles.h"
#include "core/import/files/training_settings.h"
#include "views/common/format.h"

namespace turnpoint::app {

Opener::Opener(Workspace& work, const ActionSet& actions, AppSettings& settings, Voice& voice, Sessions& sessions,
               const std::vector<Tab*>& tabs)
    : QObject(&voice), work_(work), settings_(settings), voice_(voice), sessions_(sessions), tabs_(tabs) {
  using Id = ActionId;
  const auto on = [&](Id id, auto call) { connect(actions[id], &QAction::triggered, this, call); };
  const auto then = [this](auto method) { return [this, method](const auto& path) { (this->*method)(path); }; };
  on(Id::open_model, [this, then] {
    voice_.ask_open(tr("Open model"),
                    tr("Models and task graphs (*.onnx *.pt2 *.json *.pb *.pbtxt *.graph.txt);;All files (*)"),
                    then(&Opener::open_path));
  });
  on(Id::open_hardware, [this, then] {
    voice_.ask_open(tr("Open hardware profile"), tr("Hardware profiles (*.json);;All files (*)"),
                    then(&Opener::open_hardware_file));
  });
  on(Id::open_logs, [this, then] {
    voice_.ask_open_several(tr("Open measured logs"),
                            tr("Measured logs (*.log *.txt *.csv *.json *.xml *.gz);;All files (*)"),
                            then(&Opener::open_logs));
  });
  connect(&voice_, &Voice::open_instead, this, &Opener::open_path);
  connect(&work_.document, &Document::model_changed, this, &Opener::remember_opened);
  connect(&work_.document, &Document::failed, this, [this](const Error& error, const QString& action) {
    voice_.report_about(error, action, Voice::about_opening());
  });
  connect(&work_.document, &Document::built, this, [this] {
    voice_.bar().clear_errors(Voice::about_opening());
    say_what_was_taken();
  });
}

void Opener::say_what_was_taken() {
  const ScenarioState& state = work_.document.state();
  // Of a built-in network only what its name says is stated: whoever named it knows.
  if (!state.scenario || state.model.starts_with("builtin:") ||
      std::exchange(said_of_, state.source.get()) == state.source.get())
    return;
  const auto& taken = state.scenario->taken;
  const bool stated = std::any_of(taken.begin(), taken.end(), [](const TakenSetting& one) { return one.stated; });
  if (stated) voice_.note(tr("Taken: %1").arg(views::to_qt(words_of(taken))));
}

void Opener::open_in_tab(FileKind kind, const QStringList& paths) {
  for (Tab* tab : tabs_)
    if (tab->open_files(kind, paths)) return;
}

bool Opener::open_dropped(const QMimeData& dropped) {
  QStringList files, logs;
  for (const QUrl& url : dropped.urls())
    if (url.isLocalFile()) files << url.toLocalFile();
  if (files.isEmpty()) return false;
  for (const QString& path : files) {
    // Several files at once are measurements, unless one is plainly something else; a JSON alone may be a model's.
    const FileKind kind = kind_of_file(path);
    const bool json = path.endsWith(QStringLiteral(".json"), Qt::CaseInsensitive);
    if (kind == FileKind::log ||
        (files.size() > 1 && (kind == FileKind::hardware || (json && kind == FileKind::model))))
      logs << path;
  }
  open_logs(logs);
  for (const QString& path : files) {
    if (logs.contains(path)) continue;
    open_path(path);
    break;  // one model, one session
  }
  return true;
}

void Opener::open_path(const QString& path) {
  if (path.isEmpty()) return;
  const FileKind kind = path.startsWith(QStringLiteral("builtin:")) ? FileKind::model : kind_of_file(path);
  if (!path.startsWith(QStringLiteral("builtin:"))) settings_.set_folder(QFileInfo(path).absolutePath());
  if (kind == FileKind::session) {
    sessions_.open(path);
  } else if (kind == FileKind::report) {
    open_in_tab(kind, {path});
  } else if (kind == FileKind::settings) {
    open_settings(path);
  } else if (kind == FileKind::log) {
    open_logs({path});
  } else if (kind == FileKind::hardware) {
    if (work_.document.scenario())
      work_.document.open_hardware(path.toStdString());
    else
      open_scenario({}, path.toStdString(), 0);
  } else if (work_.document.scenario()) {
    work_.document.open_model(path.toStdString());
  } else {
    open_scenario(path.toStdString(), {}, 0);
  }
}

void Opener::open_settings(const QString& path) {
  const QString what = tr("Open settings");
  const auto settings = open_training_settings(path.toStdString());
  if (!settings) return voice_.report(settings.error(), what);
  if (!work_.document.scenario()) return voice_.note(tr("Open the model that these settings train first"), path);
  const Scenario& scenario = *work_.document.scenario();
  const auto roles = find_transformer_roles(*scenario.model, scenario.settings.split_windows);
  const auto split = settings->split_on(scenario.cluster->devices(), roles ? roles->layers : 0);
  if (!split) return voice_.report(split.error(), what);
  if (const auto added = work_.runner.add_split(*split); !added) return voice_.report(added.error(), what);
  voice_.note(
      tr("%1's split stands among the methods: %2").arg(views::to_qt(settings->framework), views::to_qt(*split)), path);
}

void Opener::open_hardware_file(const QString& path) {
  const FileKind kind = kind_of_file(path);
  if (kind == FileKind::hardware || kind == FileKind::log) return open_path(path);
  settings_.set_folder(QFileInfo(path).absolutePath());
  Error error = bad_input("this is no hardware profile", path.toStdString());
  const QString seems = describe_file(path);
  if (!QFileInfo::exists(path))
    error.what = "there is no such file";
  else
    error.hint = (seems.isEmpty() ? tr("a profile is JSON that names turnpoint/hardware-profile@1 as its format; "
                                       "measured logs are opened as such")
                                  : tr("it seems to be %1").arg(seems))
                     .toStdString();
  voice_.report_about(error, tr("Open hardware profile"), Voice::about_opening());
}

void Opener::open_scenario(const std::string& model, const std::string& hardware, int devices) {
  ScenarioRequest request;
  request.model = model.empty() ? samples().front().model : model;
  request.hardware = hardware;
  request.usual_hardware = samples().front().hardware;
  request.settings.devices = devices;
  request.given = {false, false, false};
  work_.document.open(request, [this] { sessions_.begin_anew(); });
}

void Opener::open_sample(int index) {
  const Sample& sample = samples()[static_cast<std::size_t>(index)];
  open_scenario(sample.model, sample.hardware, 0);
}

void Opener::remember_opened() {
  const ScenarioState& state = work_.document.state();
  if (!state.scenario) return;
  // Samples are always at hand; the list is for what the user brought.
  if (!state.model.starts_with("builtin:")) settings_.add_recent_model(views::to_qt(state.model));
  if (state.hardware.find('/') != std::string::npos) settings_.add_recent_hardware(views::to_qt(state.hardware));
  emit recent_changed();
}

void Opener::open_logs(const QStringList& paths) {
  if (paths.isEmpty()) return;
  settings_.set_folder(QFileInfo(paths.front()).absolutePath());
  open_in_tab(FileKind::log, paths);
}

void Opener::open_profile(const QString& path, const QString& title) {
  voice_.note(tr("%1 is the hardware now").arg(title),
              path == u"local" ? tr("kept as hardware \u201clocal\u201d") : path);
  if (work_.document.scenario())
    work_.document.open_hardware(path.toStdString(), true);
  else
    open_scenario({}, path.toStdString(), 0);
}

}  // namespace turnpoint::app
