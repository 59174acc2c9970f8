// SPDX-License-Identifier: Apache-2.0
#include "app/hardware_page.h"

#include <fmt/format.h>
#include <QFileInfo>
#include <QStandardPaths>
#include <filesystem>
#include <map>
#include <optional>

#include "app/document.h"
#include "app/task_manager.h"
#include "core/base/json.h"
#include "core/cost/calibration.h"
#include "core/probe/measure_machine.h"
#include "views/common/format.h"
#include "views/hardware/hardware_view.h"

namespace turnpoint::app {

namespace {

constexpr int kMostNames = 1000;
constexpr std::size_t kMaximumProfile = 256u << 20;  // bytes

std::string file_stem(const std::string& name) {
  std::string stem;
  for (const char c : name) stem += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return stem.empty() || stem.front() == '.' ? "profile" + stem : stem.substr(0, 100);
}

/// A profile that a session names must stay what it was, so another one of the same name gets a number. Returns its
/// path.
Expected<std::string> store_profile(const Cluster& cluster, const std::filesystem::path& folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) return bad_input("the folder for profiles cannot be made: " + ec.message(), folder.string());
  const std::string text = write_hardware_profile(cluster), stem = file_stem(cluster.name);
  for (int number = 1; number <= kMostNames; ++number) {
    const auto path = folder / (number == 1 ? stem + ".json" : stem + "-" + std::to_string(number) + ".json");
    if (std::filesystem::exists(path, ec)) {
      const auto there = read_file(path, kMaximumProfile);
      if (!there || *there != text) continue;
      return path.string();
    }
    const auto written = write_file_atomically(path, text);
    if (!written) return written.error();
    return path.string();
  }
  return bad_input("a thousand profiles of this name are there already", (folder / (stem + ".json")).string());
}

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
struct HardwarePage::Reading {
  QStringList files;
  std::optional<Error> error;
  std::shared_ptr<const HardwareReport> report;
  std::string path;  ///< of the stored profile
  std::string note;  ///< to be said at the end; may be empty
};

HardwarePage::HardwarePage(TaskManager& tasks, const Document& document, views::HardwareView* view, QObject* parent)
    : QObject(parent), tasks_(tasks), document_(document), view_(view) {
  connect(&document_, &Document::scenario_changed, this, &HardwarePage::follow);
  connect(view_, &views::HardwareView::close_requested, this, [this] {
    showing_report_ = false;
    show();
  });
  connect(view_, &views::HardwareView::base_requested, this, [this] {
    if (document_.scenario()) open_logs(report_files_, document_.scenario()->cluster);
  });
  view_->set_base({});
}

QString HardwarePage::profile_folder() {
  return QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + QStringLiteral("/profiles");
}

Expected<std::string> HardwarePage::store(const Cluster& cluster) {
  return store_profile(cluster, std::filesystem::path(profile_folder().toStdU16String()));
}

void HardwarePage::show_made(const ClusterPtr& cluster, std::vector<std::string> notes, const std::string& path) {
  auto reading = std::make_shared<Reading>();
  auto report = std::make_shared<HardwareReport>();
  report->cluster = cluster;
  report->notes = std::move(notes);
  reading->report = std::move(report);
  reading->path = path;
  finish(reading, {});
}

void HardwarePage::open_logs(const QStringList& paths, ClusterPtr base) {
  if (paths.isEmpty()) return;
  auto reading = std::make_shared<Reading>();
  reading->files = paths;
  const std::filesystem::path folder(profile_folder().toStdU16String());
  const QString title = paths.size() == 1 ? tr("Read %1").arg(QFileInfo(paths.front()).fileName())
                                          : tr("Read %1 measured logs").arg(paths.size());
  tasks_.start(
      QStringLiteral("hardware_logs"), title,
      [reading, folder, base = std::move(base)](const RunContext& context) {
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
          const auto stored = store_profile(*report->cluster, folder);
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

void HardwarePage::measure(MeasureOptions options) {
  auto reading = std::make_shared<Reading>();
  measuring_ = true;
  view_->set_measuring(true);
  tasks_.start(
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

void HardwarePage::finish(const std::shared_ptr<Reading>& reading, const QString& action) {
  if (reading->error)
    emit failed(*reading->error, action);
  else
    emit succeeded(action);
  if (!reading->report) return;
  report_ = reading->report;
  report_files_ = reading->files;
  report_hardware_ = reading->path;
  showing_report_ = true;
  show();
  emit report_shown();
  if (!report_hardware_.empty())
    emit profile_made(views::to_qt(report_hardware_), views::to_qt(report_->cluster->title));
  if (!reading->note.empty()) emit noted(views::to_qt(reading->note), action);
}

void HardwarePage::set_looked_at(bool looked_at) {
  looked_at_ = looked_at;
  show();
}

void HardwarePage::follow() {
  const ScenarioState& state = document_.state();
  view_->set_base(state.scenario ? views::to_qt(state.scenario->cluster->title) : QString());
  // Other hardware was chosen: the page goes with it, and comes back to the files when their profile does.
  if (state.hardware != hardware_)
    showing_report_ = report_ && !report_hardware_.empty() && state.hardware == report_hardware_;
  hardware_ = state.hardware;
  show();
}

void HardwarePage::show() {
  if (!looked_at_) return;
  const ScenarioState& state = document_.state();
  const auto report = showing_report_ ? report_ : nullptr;
  const bool own = report && (report_hardware_.empty() || state.hardware != report_hardware_);
  const ClusterPtr cluster = own ? report->cluster : state.scenario ? state.scenario->cluster : nullptr;
  if (cluster == shown_cluster_ && report == shown_report_) return;
  shown_cluster_ = cluster;
  shown_report_ = report;
  if (!cluster && !report) {
    tasks_.cancel_purpose(QStringLiteral("hardware_page"));
    view_->set_content(nullptr);
    return;
  }
  auto made = std::make_shared<views::HardwareContentPtr>();
  tasks_.start(
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

}  // namespace turnpoint::app
