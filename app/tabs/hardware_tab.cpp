// SPDX-License-Identifier: Apache-2.0
#include "app/tabs/hardware_tab.h"

#include <fmt/format.h>
#include <QAction>
#include <QFileInfo>
#include <map>
#include <optional>

#include "app/actions.h"
#include "app/file_kind.h"
#include "app/measure_dialog.h"
#include "app/opener.h"
#include "app/profiles.h"
#include "app/voice.h"
#include "core/cost/calibration.h"
#include "core/hardware/probe_client.h"
#include "core/probe/measure_machine.h"
#include "views/common/format.h"
#include "views/hardware/hardware_view.h"

namespace turnpoint::app {

namespace {

/// What the profile's own notes do not say: what is missing here, what could not be measured and why, how well the
/// fitted constants give the measured times.
std::vector<std::string> notes_of(const Measurement& measured) {
  std::vector<std::string> notes = measured.warnings;
  if (auto reused = reuse_text(measured); !reused.empty()) notes.push_back(std::move(reused));
  if (const auto& hello = measured.messages.hello())
    for (const auto& missing : hello->missing) notes.push_back("not there: " + missing);
  std::map<std::string, int> reasons;
  for (const auto& item : measured.messages.items())
    if (!item.not_measured.empty()) ++reasons[item.not_measured];
  for (const auto& [reason, count] : reasons)
    notes.push_back("not measured, " + std::to_string(count) + (count == 1 ? " time: " : " times: ") + reason);
  for (const auto& reason : measured.left_out) notes.push_back("not measured: " + reason);
  for (const auto& error : measured.profile.errors)
    notes.push_back(fmt::format("{} {}, {}: {} times fitted within {:.1f} % (median), {:.1f} % (worst)", error.kind,
                                error.phase, to_string(error.precision), error.samples, 100 * error.median,
                                100 * error.worst));
  return notes;
}

}  // namespace

/// What a worker leaves behind.
struct HardwareTab::Reading {
  QStringList files;
  std::optional<Error> error;
  std::shared_ptr<const HardwareReport> report;
  std::string path;  ///< of the stored profile
  std::string note;  ///< to be said at the end; may be empty
};

HardwareTab::HardwareTab(const TabParts& parts)
    : ViewTab(parts, "hardware", tr("Hardware"), new views::HardwareView(parts.window)), opener_(parts.opener) {
  using View = views::HardwareView;
  connect(&work_.document, &Document::scenario_changed, this, &HardwareTab::follow);
  connect(view_, &View::close_requested, this, [this] {
    showing_report_ = false;
    show();
  });
  connect(view_, &View::base_requested, this, [this] {
    if (work_.document.scenario()) open_logs(report_files_, work_.document.scenario()->cluster);
  });
  connect(view_, &View::open_logs_requested, actions_[ActionId::open_logs], &QAction::trigger);
  connect(view_, &View::measure_requested, actions_[ActionId::measure], &QAction::trigger);
  on(ActionId::measure, [this] { ask_measure(); });
  // With what runs took the profile becomes the hardware.
  connect(&work_.validations, &ValidationRunner::calibrated, this,
          [this](const std::shared_ptr<const CalibratedProfile>& made) {
            show_made(made->cluster, made->notes, made->path);
          });
  view_->set_base({});
}

bool HardwareTab::open_files(FileKind kind, const QStringList& paths) {
  if (kind != FileKind::log) return false;
  open_logs(paths);
  return true;
}

void HardwareTab::ask_measure() {
  if (measuring_) {
    emit raise_requested();
    return;
  }
  if (const auto probe = find_probe(); !probe) return voice_.report(probe.error(), tr("Measure this machine"));
  const ScenarioPtr& scenario = work_.document.scenario();
  ModelPtr model = scenario ? scenario->model : nullptr;
  if (model && model->operators.empty()) model = nullptr;
  auto* dialog = new MeasureDialog(std::move(model), static_cast<QWidget*>(parent()));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QDialog::accepted, this, [this, dialog] { measure(dialog->options()); });
  dialog->open();
}

void HardwareTab::show_made(const ClusterPtr& cluster, std::vector<std::string> notes, const std::string& path) {
  auto reading = std::make_shared<Reading>();
  auto report = std::make_shared<HardwareReport>();
  report->cluster = cluster;
  report->notes = std::move(notes);
  reading->report = std::move(report);
  reading->path = path;
  finish(reading, {});
}

void HardwareTab::open_logs(const QStringList& paths, ClusterPtr base) {
  if (paths.isEmpty()) return;
  auto reading = std::make_shared<Reading>();
  reading->files = paths;
  const QString title = paths.size() == 1 ? tr("Read %1").arg(QFileInfo(paths.front()).fileName())
                                          : tr("Read %1 measured logs").arg(paths.size());
  work_.tasks.start(
      QStringLiteral("hardware_logs"), title,
      [reading, base = std::move(base)](const RunContext& context) {
        std::vector<std::string> files;
        for (const QString& path : reading->files) files.push_back(path.toStdString());
        auto report = read_hardware_files(files, base);
        if (report) calibrate(*report);
        if (!report) {
          reading->error = report.error();
          return;
        }
        if (context.cancelled()) return;
        if (report->cluster) {
          const auto stored = store_profile(*report->cluster);
          if (stored) {
            reading->path = *stored;
          } else {
            reading->error = stored.error();
            report->no_cluster = stored.error().message();
          }
        }
        reading->report = std::make_shared<const HardwareReport>(std::move(*report));
      },
      [this, reading](TaskOutcome outcome) {
        if (outcome == TaskOutcome::finished) finish(reading, tr("Open measured logs"));
      });
}

void HardwareTab::measure(MeasureOptions options) {
  auto reading = std::make_shared<Reading>();
  measuring_ = true;
  view_->set_measuring(true);
  work_.tasks.start(
      QStringLiteral("measure_machine"), tr("Measure this machine"),
      [reading, options = std::move(options)](const RunContext& context) {
        auto measured = measure_machine(options, context);
        if (!measured) {
          reading->error = measured.error();
          return;
        }
        auto report = std::make_shared<HardwareReport>();
        report->cluster = measured->profile.cluster;
        report->notes = notes_of(*measured);
        reading->note = reuse_text(*measured);
        if (const auto kept = keep_as_local(*report->cluster)) {
          reading->path = "local";
        } else {
          reading->error = kept.error();
          report->no_cluster = kept.error().message();
        }
        reading->report = std::move(report);
      },
      [this, reading](TaskOutcome outcome) {
        if (outcome == TaskOutcome::superseded) return;  // the newer one goes on
        measuring_ = false;
        view_->set_measuring(false);
        if (outcome == TaskOutcome::finished) finish(reading, tr("Measure this machine"));
      });
}

void HardwareTab::finish(const std::shared_ptr<Reading>& reading, const QString& action) {
  if (reading->error)
    voice_.report(*reading->error, action);
  else
    voice_.bar().clear_errors(action);
  if (!reading->report) return;
  report_ = reading->report;
  report_files_ = reading->files;
  report_hardware_ = reading->path;
  showing_report_ = true;
  show();
  emit raise_requested();
  if (!report_hardware_.empty())
    opener_.open_profile(views::to_qt(report_hardware_), views::to_qt(report_->cluster->title));
  if (!reading->note.empty()) voice_.note(views::to_qt(reading->note), action);
}

void HardwareTab::looked_at_changed(bool looked_at) {
  looked_at_ = looked_at;
  show();
}

void HardwareTab::follow() {
  const ScenarioState& state = work_.document.state();
  view_->set_base(state.scenario ? views::to_qt(state.scenario->cluster->title) : QString());
  // Other hardware was chosen: the page goes with it, and comes back to the files when their profile does.
  if (state.hardware != hardware_)
    showing_report_ = report_ && !report_hardware_.empty() && state.hardware == report_hardware_;
  hardware_ = state.hardware;
  show();
}

void HardwareTab::show() {
  if (!looked_at_) return;
  const ScenarioState& state = work_.document.state();
  const auto report = showing_report_ ? report_ : nullptr;
  const bool own = report && (report_hardware_.empty() || state.hardware != report_hardware_);
  const ClusterPtr cluster = own ? report->cluster : state.scenario ? state.scenario->cluster : nullptr;
  if (cluster == shown_cluster_ && report == shown_report_) return;
  shown_cluster_ = cluster;
  shown_report_ = report;
  if (!cluster && !report) {
    work_.tasks.cancel_purpose(QStringLiteral("hardware_page"));
    view_->set_content(nullptr);
    return;
  }
  auto made = std::make_shared<views::HardwareContentPtr>();
  work_.tasks.start(
      QStringLiteral("hardware_page"), tr("Show the hardware"),
      [made, cluster, report](const RunContext&) { *made = views::make_hardware_content(cluster, report.get()); },
      [this, made](TaskOutcome outcome) {
        if (outcome == TaskOutcome::finished && *made) {
          view_->set_content(*made);
        } else if (outcome == TaskOutcome::cancelled) {
          // "Stop all" must not leave the page on other hardware for good.
          shown_cluster_ = nullptr;
          shown_report_ = nullptr;
        }
      });
}

Tab* hardware_tab(const TabParts& parts) { return new HardwareTab(parts); }

}  // namespace turnpoint::app
