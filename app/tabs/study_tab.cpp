// SPDX-License-Identifier: Apache-2.0
// The figures of the ParDNN study, as they came with the program until they are asked again here.
#include <QDate>
#include <QFile>
#include <mutex>

#include "app/file_path.h"
#include "app/kept_work.h"
#include "app/studies.h"
#include "app/tab.h"
#include "app/voice.h"
#include "core/base/json.h"
#include "core/search/batch_study.h"
#include "views/common/format.h"
#include "views/study/study_view.h"

namespace turnpoint::app {

namespace {

const QString kStudyPurpose = QStringLiteral("study");

class StudyTab : public ViewTab<views::StudyView> {
 public:
  explicit StudyTab(const TabParts& parts) : ViewTab(parts, "study", tr("Study"), new views::StudyView(parts.window)) {
    using View = views::StudyView;
    connect(view_, &View::run_requested, this, &StudyTab::start);
    connect(view_, &View::stop_requested, this, [this] { work_.tasks.cancel_purpose(kStudyPurpose); });
    connect(view_, &View::export_requested, this, &StudyTab::ask_export);
    connect(&work_.tasks, &TaskManager::changed, this, [this] {
      if (running_ && looked_at_) show_progress();
    });
  }

 protected:
  void looked_at_changed(bool looked_at) override {
    looked_at_ = looked_at;
    if (looked_at) show();
  }

  QJsonObject save_state() const override {
    QJsonObject state = view_->save_state();
    if (own_) state[QStringLiteral("study")] = views::to_qt(write_batch_study(*study_));
    return state;
  }

  void restore_state(const QJsonObject& state) override {
    if (running_) stop();
    study_.reset();
    own_ = false;
    const QString text = state[QStringLiteral("study")].toString();
    if (!text.isEmpty()) {
      auto read = read_batch_study(text.toStdString(), "session");
      if (read) {
        study_ = std::make_shared<const BatchStudy>(std::move(*read));
        own_ = true;
      } else {
        voice_.report(read.error(), tr("Study"));
      }
    }
    if (!study_) take_shipped();
    view_->set_study(study_);
    view_->restore_state(state);
  }

  void add_to(KeptWork& work) const override {
    if (own_) work.study = study_;
  }

  void begin_anew() override { restore_state({}); }

 private:
  /// Where the worker leaves its answers while it goes on.
  struct Mailbox {
    std::mutex mutex;
    std::vector<StudyCell> found;
    std::optional<Error> error;
    std::vector<StudyCell> taken;  ///< out of `found`, by the interface thread, which alone looks at it
  };

  void take_shipped() {
    auto read = load_batch_study();
    if (!read) return voice_.report(read.error(), tr("Study"));
    study_ = std::make_shared<const BatchStudy>(std::move(*read));
  }

  void show() {
    if (study_) return;
    take_shipped();
    view_->set_study(study_);
  }

  void start(const std::string& graph) {
    if (!study_ || running_) return;
    auto mailbox = std::make_shared<Mailbox>();
    running_ = mailbox;
    work_.tasks.start(
        kStudyPurpose, tr("Study"),
        [this, mailbox, study = study_, graph](const RunContext& context) {
          const auto done = run_batch_study(*study, {{}, graph}, context, [&](const StudyCell& cell) {
            {
              const std::lock_guard lock(mailbox->mutex);
              mailbox->found.push_back(cell);
            }
            QMetaObject::invokeMethod(
                this, [this, mailbox] { take(mailbox); }, Qt::QueuedConnection);
          });
          if (!done) mailbox->error = done.error();
        },
        [this, mailbox](TaskOutcome outcome) {
          if (mailbox != running_) return;
          take(mailbox);
          running_.reset();
          const bool stopped =
              outcome != TaskOutcome::finished || (mailbox->error && mailbox->error->code == ErrorCode::cancelled);
          if (!stopped && !mailbox->error) set_day(*mailbox);
          if (mailbox->error && !stopped) voice_.report(*mailbox->error, tr("Study"));
          view_->set_running(
              false, -1,
              stopped ? tr("stopped; answers that the study had not asked for again are unchanged") : QString());
        });
    show_progress();
  }

  void take(const std::shared_ptr<Mailbox>& mailbox) {
    if (mailbox != running_) return;
    std::vector<StudyCell> found;
    {
      const std::lock_guard lock(mailbox->mutex);
      found.swap(mailbox->found);
    }
    if (found.empty()) return;
    auto next = std::make_shared<BatchStudy>(*study_);
    for (StudyCell& cell : found) {
      next->put(cell);
      mailbox->taken.push_back(std::move(cell));
    }
    study_ = std::move(next);
    own_ = true;
    view_->set_study(study_);
    show_progress();
  }

  /// Answers that were not asked for again are older than today.
  void set_day(const Mailbox& mailbox) {
    if (!study_->all_among(mailbox.taken)) return;
    auto next = std::make_shared<BatchStudy>(*study_);
    next->made = QDate::currentDate().toString(Qt::ISODate).toStdString();
    study_ = std::move(next);
    view_->set_study(study_);
  }

  void show_progress() {
    if (!running_) return;
    for (const TaskInfo& task : work_.tasks.tasks())
      if (task.purpose == kStudyPurpose) return view_->set_running(true, task.fraction, task.phase);
    view_->set_running(true, -1, {});
  }

  void stop() {
    running_.reset();
    work_.tasks.cancel_purpose(kStudyPurpose);
    view_->set_running(false, -1, {});
  }

  void ask_export(const QString& suffix) {
    if (suffix != QStringLiteral("json")) return ask_export_picture(suffix);
    voice_.ask_save(tr("Export study"), QStringLiteral("study.json"), filter_of(suffix), [this](const QString& path) {
      const bool done = study_ && write_file_atomically(to_path(path), write_batch_study(*study_)).has_value();
      voice_.tell_written(done, path, tr("Export study"));
    });
  }

  std::shared_ptr<const BatchStudy> study_;
  std::shared_ptr<Mailbox> running_;  ///< of the newest task; null: none
  bool own_ = false;                  ///< asked again, so that a session keeps it
  bool looked_at_ = false;
};

}  // namespace

Tab* study_tab(const TabParts& parts) { return new StudyTab(parts); }

}  // namespace turnpoint::app
