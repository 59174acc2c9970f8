// SPDX-License-Identifier: Apache-2.0
#include "app/voice.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QRegularExpression>

#include "app/app_settings.h"
#include "views/common/format.h"

namespace turnpoint::app {

Voice::Voice(AppSettings& settings, views::MessageBar& bar, QWidget* window)
    : QObject(window), settings_(settings), bar_(bar), window_(window) {}

void Voice::report_about(const Error& error, const QString& what_failed, const QString& about) {
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
    message.act = [this, instead] { emit open_instead(instead); };
  }
  bar_.show_message(std::move(message));
}

void Voice::note(const QString& what, const QString& where) {
  bar_.show_message({views::Message::Kind::note, what, where});
}

void Voice::tell_written(bool done, const QString& path, const QString& what_failed) {
  if (done)
    note(tr("Exported %1").arg(path.section(u'/', -1)), path);
  else
    report(bad_input("the file cannot be written", path.toStdString()), what_failed);
}

QFileDialog* Voice::dialog(const QString& title, const QString& filter) {
  auto* dialog = new QFileDialog(window_, title, settings_.folder(), filter);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  return dialog;
}

void Voice::ask_open(const QString& title, const QString& filter, Then then) {
  QFileDialog* asks = dialog(title, filter);
  asks->setFileMode(QFileDialog::ExistingFile);
  connect(asks, &QFileDialog::fileSelected, this, std::move(then));
  asks->open();
}

void Voice::ask_open_several(const QString& title, const QString& filter,
                             std::function<void(const QStringList&)> then) {
  QFileDialog* asks = dialog(title, filter);
  asks->setFileMode(QFileDialog::ExistingFiles);
  connect(asks, &QFileDialog::filesSelected, this, std::move(then));
  asks->open();
}

void Voice::ask_save(const QString& title, const QString& suggestion, const QString& filter, Then then) {
  QFileDialog* asks = dialog(title, filter);
  asks->setAcceptMode(QFileDialog::AcceptSave);
  asks->setDefaultSuffix(QFileInfo(suggestion).suffix());
  asks->selectFile(suggestion);
  connect(asks, &QFileDialog::fileSelected, this, [this, then = std::move(then)](const QString& path) {
    settings_.set_folder(QFileInfo(path).absolutePath());
    then(path);
  });
  asks->open();
}

QString filter_of(const QString& suffix) { return Voice::tr("%1 files (*.%2)").arg(suffix.toUpper(), suffix); }

}  // namespace turnpoint::app
