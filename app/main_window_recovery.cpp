// SPDX-License-Identifier: Apache-2.0
// Unsaved work: the copy of it that is kept while the window runs, and what windows before have left.
#include <QDateTime>
#include <QFileInfo>
#include <QTimer>

#include "app/document.h"
#include "app/main_window.h"
#include "app/recent_name.h"
#include "app/recovery.h"
#include "views/common/message_bar.h"

namespace turnpoint::app {

void MainWindow::keep_recovery(const QString& folder, int every_ms) {
  recovery_folder_ = folder;
  auto* timer = new QTimer(this);
  timer->start(every_ms);
  connect(timer, &QTimer::timeout, this, [this] { write_recovery(); });
  offer_recovery();
}

void MainWindow::write_recovery() {
  if (recovery_folder_.isEmpty()) return;
  if (unsaved().isEmpty()) return drop_recovery();
  const KeptWork now = work_now();
  if (recovery_ && changed_work(recovered_, now).isEmpty()) return;
  if (!recovery_) {
    auto copy = RecoveryCopy::make(recovery_folder_);
    // Said once: a home that cannot be written is no reason to be told so every minute.
    if (!copy) {
      recovery_folder_.clear();
      return report(copy.error(), tr("Keeping a recovery copy"));
    }
    recovery_ = std::make_unique<RecoveryCopy>(std::move(*copy));
  }
  if (const auto written = recovery_->write(make_session(false), session_path_); !written)
    return report(written.error(), tr("Keeping a recovery copy"));
  recovered_ = now;
}

void MainWindow::drop_recovery() {
  if (recovery_) recovery_->remove();
  recovery_.reset();
}

void MainWindow::end_by_signal() {
  write_recovery();
  // Whoever ends the program from outside is not there to be asked; the next start offers what was unsaved.
  asks_before_leaving_ = false;
  recovery_folder_.clear();
  recovery_.reset();
  close();
}

void MainWindow::offer_recovery() {
  for (LeftBehind& each : left_behind(recovery_folder_)) {
    auto left = std::make_shared<LeftBehind>(std::move(each));
    QString name = recent_name(left->session_path.isEmpty() ? QString::fromStdString(left->session.scenario.model)
                                                            : left->session_path);
    if (name.startsWith(QStringLiteral("builtin:"))) name = name.section(u':', 1);
    views::Message message;
    message.kind = views::Message::Kind::warning;
    message.what = tr("Turnpoint did not close properly: unsaved work on %1 is still there").arg(name);
    message.where = tr("From %1; it is kept until it is restored or this message is dismissed")
                        .arg(QFileInfo(left->copy.path()).lastModified().toString(Qt::ISODate).replace(u'T', u' '));
    message.action = tr("Restore");
    message.act = [this, left] {
      before_leaving([this, left] {
        // Until it is written again under this window's own name, the old copy is the only one.
        take_session(left->session, left->session_path, true, [this, left] {
          write_recovery();
          if (recovery_) left->copy.remove();
        });
      });
    };
    message.dismissed = [left] { left->copy.remove(); };
    messages_->show_message(std::move(message));
  }
}

void MainWindow::show_title() {
  const ScenarioState& state = document_->state();
  QString title = QStringLiteral("Turnpoint");
  if (state.scenario)
    title = tr("%1 on %2")
                .arg(QString::fromStdString(state.scenario->model->name),
                     QString::fromStdString(state.scenario->cluster->title)) +
            QStringLiteral("[*] \u2014 ") + title;
  if (state.scenario && !session_path_.isEmpty())
    title = QFileInfo(session_path_).completeBaseName() + QStringLiteral(": ") + title;
  setWindowTitle(title);
  setWindowModified(!unsaved().isEmpty());
}

}  // namespace turnpoint::app
