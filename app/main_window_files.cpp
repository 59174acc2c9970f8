// SPDX-License-Identifier: Apache-2.0
// Opening, saving, dropping; and the few pages of help.
#include <QAction>
#include <QApplication>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QMimeData>
#include <QRegularExpression>

#include "app/app_settings.h"
#include "app/command_palette.h"
#include "app/document.h"
#include "app/file_kind.h"
#include "app/file_path.h"
#include "app/hardware_page.h"
#include "app/main_window.h"
#include "app/pinned_searches.h"
#include "app/search_runner.h"
#include "app/shortcut_page.h"
#include "app/start_page.h"
#include "app/task_manager.h"
#include "app/validation_page.h"
#include "core/import/files/training_settings.h"
#include "views/common/format.h"
#include "views/common/message_bar.h"
#include "views/frontier/frontier_chart.h"
#include "views/hardware/hardware_view.h"
#include "views/notes/notes_view.h"
#include "views/scenario/scenario_panel.h"

namespace turnpoint::app {

void MainWindow::report(const Error& error, const QString& what_failed) {
  report_about(error, what_failed, what_failed);
}

void MainWindow::report_about(const Error& error, const QString& what_failed, const QString& about) {
  if (error.code == ErrorCode::cancelled) return;
  QString what = views::to_qt(error.what);
  if (!what.isEmpty()) what[0] = what[0].toUpper();
  QStringList where;
  if (!error.where.empty()) where << views::to_qt(error.where);
  if (!error.hint.empty()) where << views::to_qt(error.hint);
  if (where.isEmpty()) where << what_failed;
  views::Message message{views::Message::Kind::error, what, where.join(QStringLiteral(" — ")), about};
  // A config.json of an unknown family: the error names the nearest one, its place is the file and the key.
  static const QRegularExpression nearest(QStringLiteral(R"(config\.json(\?as=([\w.-]+)))"));
  if (const auto found = nearest.match(views::to_qt(error.what)); found.hasMatch() && !error.where.empty()) {
    const QString instead = views::to_qt(error.where).section(QStringLiteral(": "), 0, -2) + found.captured(1);
    message.action = tr("Read as %1").arg(found.captured(2));
    message.act = [this, instead] { open_path(instead); };
  }
  messages_->show_message(std::move(message));
}

void MainWindow::note(const QString& what, const QString& where) {
  messages_->show_message({views::Message::Kind::note, what, where});
}

void MainWindow::open_path(const QString& path) {
  if (path.isEmpty()) return;
  const FileKind kind = path.startsWith(QStringLiteral("builtin:")) ? FileKind::model : kind_of_file(path);
  if (!path.startsWith(QStringLiteral("builtin:"))) settings_.set_folder(QFileInfo(path).absolutePath());
  if (kind == FileKind::session) {
    open_session(path);
  } else if (kind == FileKind::report) {
    validation_page_->open(path);
  } else if (kind == FileKind::settings) {
    open_settings(path);
  } else if (kind == FileKind::log) {
    open_logs({path});
  } else if (kind == FileKind::hardware) {
    if (document_->scenario())
      document_->open_hardware(path.toStdString());
    else
      open_scenario({}, path.toStdString(), 0);
  } else if (document_->scenario()) {
    document_->open_model(path.toStdString());
  } else {
    open_scenario(path.toStdString(), {}, 0);
  }
}

void MainWindow::open_settings(const QString& path) {
  const QString what = tr("Open settings");
  const auto settings = open_training_settings(path.toStdString());
  if (!settings) return report(settings.error(), what);
  if (!document_->scenario()) return note(tr("Open the model that these settings train first"), path);
  const auto split = settings->split_on(document_->scenario()->cluster->devices());
  if (!split) return report(split.error(), what);
  if (const auto added = runner_->add_split(*split); !added) return report(added.error(), what);
  note(tr("%1's split stands among the methods: %2").arg(views::to_qt(settings->framework), views::to_qt(*split)),
       path);
}

void MainWindow::open_hardware_file(const QString& path) {
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
  report_about(error, tr("Open hardware profile"), about_opening());
}

void MainWindow::open_scenario(const std::string& model, const std::string& hardware, int devices) {
  ScenarioRequest request;
  request.model = model.empty() ? samples().front().model : model;
  request.hardware = hardware;
  request.usual_hardware = samples().front().hardware;
  request.settings.devices = devices;
  request.given = {false, false, false};
  document_->open(request, [this] {
    // Another beginning: what a session before had to say is not about this.
    pinned_searches_->set({});
    notes_view_->set_notes({}, {});
    session_path_.clear();
    kept_ = work_now();
    show_title();
  });
}

void MainWindow::open_sample(int index) {
  const Sample& sample = samples()[static_cast<std::size_t>(index)];
  open_scenario(sample.model, sample.hardware, 0);
}

void MainWindow::remember_opened() {
  const ScenarioState& state = document_->state();
  if (!state.scenario) return;
  // Samples are always at hand; the list is for what the user brought.
  if (!state.model.starts_with("builtin:")) settings_.add_recent_model(views::to_qt(state.model));
  if (state.hardware.find('/') != std::string::npos) settings_.add_recent_hardware(views::to_qt(state.hardware));
  fill_choices();
}

void MainWindow::ask_open(const QString& title, const QString& filter, void (MainWindow::*then)(const QString&)) {
  auto* dialog = new QFileDialog(this, title, settings_.folder(), filter);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, then);
  dialog->open();
}

void MainWindow::ask_open_logs() {
  auto* dialog = new QFileDialog(this, tr("Open measured logs"), settings_.folder(),
                                 tr("Measured logs (*.log *.txt *.csv *.json *.xml *.gz);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFiles);
  connect(dialog, &QFileDialog::filesSelected, this, &MainWindow::open_logs);
  dialog->open();
}

void MainWindow::open_logs(const QStringList& paths) {
  if (paths.isEmpty()) return;
  settings_.set_folder(QFileInfo(paths.front()).absolutePath());
  hardware_page_->open_logs(paths);
}

void MainWindow::show_hardware_page() {
  for (QDockWidget* dock : view_docks_) {
    if (dock->widget() != hardware_view_) continue;
    dock->show();
    dock->raise();
  }
}

void MainWindow::open_profile(const QString& path, const QString& title) {
  note(tr("%1 is the hardware now").arg(title), path == u"local" ? tr("kept as hardware \u201clocal\u201d") : path);
  if (document_->scenario())
    document_->open_hardware(path.toStdString(), true);
  else
    open_scenario({}, path.toStdString(), 0);
}

void MainWindow::ask_save(const QString& title, const QString& suggestion, const QString& filter,
                          std::function<void(const QString&)> then) {
  auto* dialog = new QFileDialog(this, title, settings_.folder(), filter);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(QFileInfo(suggestion).suffix());
  dialog->selectFile(suggestion);
  connect(dialog, &QFileDialog::fileSelected, this, [this, then = std::move(then)](const QString& path) {
    settings_.set_folder(QFileInfo(path).absolutePath());
    then(path);
  });
  dialog->open();
}

void MainWindow::pin_frontier() {
  const MethodRun* run = runner_->subject();
  if (!run || !run->result) return;
  const Result& result = *run->result;
  QStringList differs;
  for (const OptionRecord& option : scenario_options()) {
    const double value = get_option(result.scenario->settings, option.key);
    if (option.key.ends_with("-scale") && value != 1)
      differs << views::to_qt(option.text) + u' ' + views::factor_text(value);
  }
  if (differs.isEmpty()) differs << views::to_qt(result.scenario->cluster->title);
  if (!result.scenario->tasks) differs << batch_words(*result.scenario);
  // Other models have pinned frontiers of their own, which come and go with them.
  const std::string& model = result.scenario->model->name;
  differs.prepend(views::to_qt(model));
  document_->pin({differs.join(QStringLiteral(", ")), result.method, result.points, model});
  actions_[ActionId::show_pinned]->setChecked(true);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList files, logs;
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) files << url.toLocalFile();
  if (files.isEmpty()) return;
  event->acceptProposedAction();
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
    return;  // one model, one session
  }
}

void MainWindow::open_palette() {
  std::vector<PaletteEntry> entries;
  for (QAction* action : actions_.all()) {
    if (!action->isEnabled()) continue;
    entries.push_back({action->text().remove(u'&'), action->shortcut().toString(QKeySequence::NativeText),
                       [action] { action->trigger(); }});
  }
  for (const OptionRecord& option : scenario_options()) {
    const QString key = views::to_qt(option.key);
    if (scenario_panel_->has_setting(key))
      entries.push_back({views::to_qt(option.text), tr("setting"), [this, key] {
                           scenario_dock_->show();
                           scenario_dock_->raise();
                           scenario_panel_->focus_setting(key);
                         }});
  }
  for (const Method& method : backend_.methods()) {
    const QString title = views::to_qt(method.title);
    if (!method.own_split)
      entries.push_back({title, tr("search with this method"), [this, name = method.name] {
                           runner_->set_enabled(name, true);
                           runner_->search(name);
                         }});
  }
  for (const BuiltinModel& model : backend_.builtin_models())
    entries.push_back({views::to_qt(model.name), tr("open this model"),
                       [this, name = "builtin:" + model.name] { open_path(QString::fromStdString(name)); }});
  if (shown_model_) {
    for (std::size_t i = 0; i < shown_model_->operators.size(); ++i) {
      const Operator& op = shown_model_->operators[OperatorId(i)];
      entries.push_back({views::to_qt(op.name), views::to_qt(op.detail),
                         [this, i] { document_->selection().pick_operators({OperatorId(i)}); }});
    }
  }
  palette_->open(std::move(entries));
}

void MainWindow::show_help() {
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("What the chart shows"), QString(), QMessageBox::Close, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setText(tr(
      "<p><b>Every dot is a complete plan</b>: how each operator of the model is split over the devices. Right "
      "means more memory per device, up means "
      "a slower iteration; lower left is better.</p>"
      "<p>The <b>line</b> is the frontier: no plan is better in both. It has steps because there is no plan between "
      "two plans. The dotted lines are its "
      "two parts, computing and sending.</p>"
      "<p>The <b>turning point</b> is where more memory stops paying. Plans right of the <b>memory line</b> do not "
      "fit the device; drag the line to ask "
      "what a larger device would give.</p>"
      "<p>The <b>sliders</b> ask what if: the line follows at once, dashed while it is coarse, and exact when the "
      "hand rests.</p>"
      "<p>A <b>placement</b> puts every task of a training graph on one device: one dot per method, its time and peak "
      "memory simulated with all waiting and overlap. The <b>simulated clock</b> moves every other plan to its "
      "simulated time and memory as well, so that all can be compared; without it they are plain sums.</p>"
      "<p>Click a plan to see it in all views; arrow keys walk along the line (with Shift plan by plan), T picks the "
      "turning point.</p>"));
  box->open();
}

void MainWindow::show_shortcuts() {
  QStringList views;
  for (const QDockWidget* dock : view_docks_) views << dock->windowTitle();
  auto* box =
      new QMessageBox(QMessageBox::NoIcon, tr("Keyboard shortcuts"), shortcut_page(views), QMessageBox::Close, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

void MainWindow::show_about() {
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About Turnpoint"), QString(), QMessageBox::Close, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setText(tr("<p><b>Turnpoint %1</b></p><p>How should this model be trained on these devices?</p><p>Sources: "
                  "Apache-2.0. This program links QCustomPlot and is "
                  "therefore under GPL-3.0-or-later as a whole.</p>")
                   .arg(QCoreApplication::applicationVersion().toHtmlEscaped()));
  box->open();
}

}  // namespace turnpoint::app
