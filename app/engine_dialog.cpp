// SPDX-License-Identifier: Apache-2.0
#include "app/engine_dialog.h"

#include <fmt/format.h>
#include <QVBoxLayout>
#include <algorithm>
#include <optional>
#include <vector>

#include "app/exports.h"
#include "app/workspace.h"
#include "core/export/engines/python_text.h"
#include "core/export/nearest.h"
#include "core/search/explain/asked_part.h"
#include "core/validation/engine/engine_step.h"
#include "views/common/format.h"
#include "views/plan/engine_view.h"

namespace turnpoint::app {

namespace {

constexpr const char* kMeasuredResult = "result.json";  // of commands for a terminal
const QString kLook = QStringLiteral("engines"), kNearest = QStringLiteral("nearest plan");

std::vector<const ExportFormat*> engine_formats() {
  std::vector<const ExportFormat*> found;
  for (const ExportFormat& format : export_formats())
    if (format.engine) found.push_back(&format);
  return found;
}

views::EngineTarget target_of(const ExportFormat& format) {
  views::EngineTarget target;
  target.key = views::to_qt(format.key);
  target.name = views::to_qt(format.name);
  target.about = views::to_qt(format.text);
  return target;
}

/// Lines for a terminal that run some steps of the plan under its engine; empty: it is not measured so.
QString measuring_commands(const ExportFormat& format, const ExportSource& source) {
  const auto known = std::ranges::find(engines(), format.key, &Engine::format);
  const Scenario& scenario = *source.picked->scenario;
  const Cluster& cluster = *scenario.cluster;
  if (known == engines().end() || (known->one_process && cluster.nodes > 1)) return {};
  std::string validate =
      fmt::format("turnpoint-cli validate {} --point {} --engine {}", kMeasuredResult, source.point, known->key);
  if (!known->one_process)
    validate += fmt::format(" --launcher {}", shell_quoted(torchrun_words(cluster.nodes, cluster.devices_per_node)));
  if (known->takes_model && !made_by_transformers(*scenario.model)) validate += " --model-code MODEL.py:FUNCTION";
  return views::to_qt(search_command(*source.picked, kMeasuredResult) + "\n" + validate + " --out report.json\n");
}

views::EngineTarget looked_at(const ExportFormat& format, const ExportSource& source, bool sketch) {
  views::EngineTarget target = target_of(format);
  target.looked_at = true;
  const auto file = engine_file(format, source);
  if (!file) {
    target.refusal = views::to_qt(file.error().message());
    return target;
  }
  target.text = views::to_qt(file->text);
  target.start = views::to_qt(file->start);
  if (!sketch) target.measure = measuring_commands(format, source);  // the points of a sketch have other numbers later
  for (const std::string& way : file->otherwise) target.otherwise << views::to_qt(way);
  return target;
}

bool same_plan(const ExportSource& a, const ExportSource& b) { return a.picked == b.picked && a.point == b.point; }

}  // namespace

EngineDialog::EngineDialog(Workspace& work, Exports& exports, QWidget* window)
    : QDialog(window), work_(work), exports_(exports), view_(new views::EngineView(this)) {
  setObjectName(QStringLiteral("engine_dialog"));
  setWindowTitle(tr("Plan for an engine"));
  resize(1060, 680);
  auto* column = new QVBoxLayout(this);
  column->addWidget(view_);
  connect(view_, &views::EngineView::save_wanted, this, [this](const QString& key) {
    if (const ExportFormat* format = find_format(key.toStdString())) exports_.ask_export(*format);
  });
  connect(view_, &views::EngineView::nearest_wanted, this, &EngineDialog::look_for_nearest);
  connect(view_, &views::EngineView::point_wanted, this,
          [this](const views::PickedPoint& point) { work_.document.selection().pick_point(point); });
}

void EngineDialog::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  follow();
}

void EngineDialog::hideEvent(QHideEvent* event) {
  QDialog::hideEvent(event);
  shown_ = {};
  view_->set_targets({}, {});
  for (const QString& purpose : {kLook, kNearest}) work_.tasks.cancel_purpose(purpose);
}

void EngineDialog::follow() {
  if (!isVisible()) return;
  const QString none = exports_.why_no_plan();
  const ExportSource source = none.isEmpty() ? exports_.source() : ExportSource();
  if (same_plan(source, shown_) && !view_->targets().empty()) return;
  shown_ = source;
  work_.tasks.cancel_purpose(kNearest);
  if (!none.isEmpty()) {
    work_.tasks.cancel_purpose(kLook);
    return view_->set_targets({}, {}, none);
  }
  look(source);
}

void EngineDialog::look(const ExportSource& source) {
  const ResultPoint& point = source.picked->points[source.point];
  const MethodRun* run = work_.picked_run();
  plan_words_ = tr("Point %1 of %2: %3 and %4 by plain sums")
                    .arg(source.point)
                    .arg(run ? views::to_qt(run->title) : QString(), views::memory_text(point.memory_bytes),
                         views::time_text(point.time_s));
  std::vector<views::EngineTarget> waiting;
  for (const ExportFormat* format : engine_formats()) waiting.push_back(target_of(*format));
  view_->set_targets(plan_words_, std::move(waiting));
  auto found = std::make_shared<std::vector<views::EngineTarget>>();
  work_.tasks.start(
      kLook, tr("Looking at engines"),
      [source, found, sketch = run && run->coarse](const RunContext& context) {
        for (const ExportFormat* format : engine_formats()) {
          if (context.cancelled()) return;
          found->push_back(looked_at(*format, source, sketch));
        }
      },
      [this, source, found](TaskOutcome outcome) {
        if (outcome != TaskOutcome::finished || !same_plan(source, shown_)) return;
        view_->set_targets(plan_words_, std::move(*found));
        const MethodRun* now = work_.picked_run();
        if (now && !now->coarse) look_for_nearest();  // of a sketch only where that is asked for
      });
}

std::vector<EngineDialog::Curve> EngineDialog::curves() const {
  std::vector<Curve> all;
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled && run.result && run.result->plans && (run.result == shown_.picked || !run.coarse))
      all.push_back({run.name, run.title, run.result});
  std::ranges::stable_partition(all, [&](const Curve& one) { return one.result == shown_.picked; });
  return all;
}

namespace {

/// Of everything that is drawn, for each engine the fastest plan that fits and that it can run. Of other methods
/// only markers are looked at, since every plan of a curve has to be unrolled.
Expected<std::vector<EngineDialog::Nearest>> look_through(const std::vector<EngineDialog::Curve>& curves,
                                                          const std::vector<const ExportFormat*>& refusing,
                                                          const RunContext& context) {
  constexpr std::size_t kMarkers = 16;
  std::vector<EngineDialog::Nearest> best(refusing.size());
  const auto fits = [](const EngineDialog::Curve& one) {
    return std::ranges::any_of(one.result->points, &ResultPoint::fits);
  };
  const bool some_fit = std::ranges::any_of(curves, fits);
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const ResultPtr& result = curves[c].result;
    if ((c > 0 && result->points.size() > kMarkers) || (some_fit && !fits(curves[c]))) continue;
    const auto open = [&](auto) -> Expected<ResultPtr> { return result; };
    auto found = nearest_plans(refusing, nearest_order(result->points), open, context);
    if (!found) return found.error();
    for (std::size_t e = 0; e < refusing.size(); ++e) {
      if (!(*found)[e]) continue;
      const ResultPoint& point = result->points[(*found)[e]->point];
      const ResultPoint* before = best[e] ? &curves[best[e]->curve].result->points[best[e]->point] : nullptr;
      if (!before || point.time_s < before->time_s) best[e] = {c, (*found)[e]->point};
    }
  }
  return best;
}

}  // namespace

void EngineDialog::look_for_nearest() {
  if (!shown_.picked) return;
  std::vector<views::EngineTarget> targets = view_->targets();
  std::vector<const ExportFormat*> refusing;
  for (views::EngineTarget& target : targets)
    if ((target.looking_for_nearest = target.looked_at && !target.refusal.isEmpty()))
      refusing.push_back(find_format(target.key.toStdString()));
  if (refusing.empty()) return;
  view_->set_targets(plan_words_, std::move(targets));
  auto found = std::make_shared<std::optional<Expected<std::vector<Nearest>>>>();
  work_.tasks.start(
      kNearest, tr("Nearest plans for engines"),
      [drawn = curves(), refusing, found](const RunContext& context) {
        found->emplace(look_through(drawn, refusing, context));
      },
      [this, source = shown_, drawn = curves(), refusing, found](TaskOutcome outcome) {
        if (!same_plan(source, shown_)) return;
        const bool done = outcome == TaskOutcome::finished && found->has_value() && (*found)->has_value();
        std::vector<views::EngineTarget> shown = view_->targets();
        for (views::EngineTarget& target : shown) {
          target.looking_for_nearest = false;
          for (std::size_t i = 0; done && i < refusing.size(); ++i)
            if (target.key == views::to_qt(refusing[i]->key)) tell_nearest((***found)[i], drawn, target);
        }
        view_->set_targets(plan_words_, std::move(shown));
      });
}

/// What is nearest to the plan that an engine refuses, in words.
void EngineDialog::tell_nearest(const Nearest& nearest, const std::vector<Curve>& drawn,
                                views::EngineTarget& target) const {
  if (!nearest) {
    const bool some_fit = std::ranges::any_of(shown_.picked->points, &ResultPoint::fits);
    target.nearest =
        (some_fit ? tr("%1 can run no plan of the chart that fits.") : tr("%1 can run no plan of the chart."))
            .arg(target.name);
    return;
  }
  const Curve& curve = drawn[nearest->curve];
  const ResultPoint& point = curve.result->points[nearest->point];
  target.nearest_point = views::PickedPoint{curve.method, nearest->point};
  target.nearest_name = curve.result == shown_.picked ? tr("point %1").arg(nearest->point) : views::to_qt(curve.title);
  target.nearest = tr("Nearest is %1, %2 and %3: %4.")
                       .arg(target.nearest_name, views::memory_text(point.memory_bytes), views::time_text(point.time_s),
                            views::to_qt(words_beside(point, shown_.picked->points[shown_.point])));
}

}  // namespace turnpoint::app
