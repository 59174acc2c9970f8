// SPDX-License-Identifier: Apache-2.0
#include "app/engine_dialog.h"

#include <QVBoxLayout>
#include <algorithm>
#include <optional>
#include <vector>

#include "app/engine_commands.h"
#include "app/exports.h"
#include "app/found_again.h"
#include "app/workspace.h"
#include "core/export/nearest.h"
#include "core/validation/engine/engine_step.h"
#include "views/common/format.h"
#include "views/plan/engine_view.h"

namespace turnpoint::app {

namespace {

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
QString measuring_commands(const ExportFormat& format, const Result& result, std::size_t point) {
  const auto known = std::ranges::find(engines(), format.key, &Engine::format);
  return known == engines().end() ? QString() : cluster_commands(result, point, known->key);
}

/// `found_again`: a terminal that searches again finds the same points.
views::EngineTarget looked_at(const ExportFormat& format, const ExportSource& source, bool found_again) {
  views::EngineTarget target = target_of(format);
  target.looked_at = true;
  const auto file = engine_file(format, source);
  if (!file) {
    target.refusal = views::to_qt(file.error().message());
    return target;
  }
  target.text = views::to_qt(file->text);
  target.start = views::to_qt(file->start);
  if (found_again) target.measure = measuring_commands(format, *source.picked, source.point);
  for (const std::string& way : file->otherwise) target.otherwise << views::to_qt(way);
  return target;
}

}  // namespace

EngineDialog::EngineDialog(Workspace& work, Exports& exports, QWidget* window)
    : QDialog(window), work_(work), exports_(exports), view_(new views::EngineView(this)) {
  setObjectName(QStringLiteral("engine_dialog"));
  setWindowTitle(tr("Plan for an engine"));
  resize(1060, 680);
  auto* column = new QVBoxLayout(this);
  column->addWidget(view_);
  connect(view_, &views::EngineView::save_wanted, this, [this](const QString& key) {
    if (const ExportFormat* format = find_format(key.toStdString()))
      exports_.ask_export(*format, {{}, shown_.result, shown_.point});  // that which is shown, whatever comes meanwhile
  });
  connect(view_, &views::EngineView::look_wanted, this, &EngineDialog::look);
  connect(view_, &views::EngineView::nearest_wanted, this, &EngineDialog::look_for_nearest);
  connect(view_, &views::EngineView::point_wanted, this, &EngineDialog::pick);
}

void EngineDialog::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  if (!event->spontaneous()) follow();
}

void EngineDialog::hideEvent(QHideEvent* event) {
  QDialog::hideEvent(event);
  if (event->spontaneous()) return;  // minimised
  shown_ = {};
  drawn_.clear();
  view_->setEnabled(true);
  view_->set_targets({}, {});
  for (const QString& purpose : {kLook, kNearest}) work_.tasks.cancel_purpose(purpose);
}

EngineDialog::Picked EngineDialog::picked_now() const {
  const MethodRun* run = work_.picked_run();
  return {run->result, work_.document.selection().point()->index, run->coarse};
}

void EngineDialog::follow() {
  if (!isVisible()) return;
  if (const QString none = exports_.why_no_plan(); !none.isEmpty()) {
    shown_ = {};
    for (const QString& purpose : {kLook, kNearest}) work_.tasks.cancel_purpose(purpose);
    view_->setEnabled(true);
    return view_->set_targets({}, {}, none);
  }
  if (const Picked now = picked_now(); !(now == shown_)) {
    shown_ = now;
    return look();
  }
  // The same plan beside others: another one may be nearest.
  if (!drawn_.empty() && curves() != drawn_ && !shown_.sketch) look_for_nearest();
}

/// What was shown before stays, switched off, until there is something new.
void EngineDialog::look() {
  work_.tasks.cancel_purpose(kNearest);
  ++nearest_looks_;  // what was begun is for another plan
  drawn_.clear();
  const ResultPoint& point = shown_.result->points[shown_.point];
  const MethodRun* run = work_.picked_run();
  plan_words_ = tr("Point %1 of %2: %3 and %4 by plain sums")
                    .arg(shown_.point)
                    .arg(run ? views::to_qt(run->title) : QString(), views::memory_text(point.memory_bytes),
                         views::time_text(point.time_s));
  if (view_->targets().empty()) {
    std::vector<views::EngineTarget> waiting;
    for (const ExportFormat* format : engine_formats()) waiting.push_back(target_of(*format));
    view_->set_targets(plan_words_, std::move(waiting));
  }
  view_->setEnabled(false);
  const bool found_again = why_not_found_again(*shown_.result, shown_.sketch).isEmpty();
  auto found = std::make_shared<std::vector<views::EngineTarget>>();
  work_.tasks.start(
      kLook, tr("Looking at engines"),
      [source = ExportSource{{}, shown_.result, shown_.point}, found, found_again](const RunContext& context) {
        for (const ExportFormat* format : engine_formats()) {
          if (context.cancelled()) return;
          found->push_back(looked_at(*format, source, found_again));
        }
      },
      [this, found, look = ++looks_](TaskOutcome outcome) {
        if (look != looks_ || !shown_.result) return;
        view_->setEnabled(true);
        if (outcome != TaskOutcome::finished) return show_stopped();
        view_->set_targets(plan_words_, std::move(*found));
        if (!shown_.sketch) look_for_nearest();  // of a sketch only where that is asked for
      },
      Preempt::let_it_finish);
}

/// Nothing is known of the plan: the user has stopped looking at it.
void EngineDialog::show_stopped() {
  std::vector<views::EngineTarget> targets;
  for (const ExportFormat* format : engine_formats()) {
    targets.push_back(target_of(*format));
    targets.back().stopped = true;
  }
  view_->set_targets(plan_words_, std::move(targets));
}

std::vector<DrawnCurve> EngineDialog::curves() const {
  std::vector<DrawnCurve> all;
  for (const MethodRun& run : work_.runner.runs())
    if (run.enabled && run.result && run.result->plans && (run.result == shown_.result || !run.coarse))
      all.push_back({run.name, run.title, run.result});
  std::ranges::stable_partition(all, [&](const DrawnCurve& one) { return one.result == shown_.result; });
  return all;
}

/// For each engine the fastest plan that fits and that it can run: of the first curve, and of all others that are
/// markers. Every plan of a curve would have to be unrolled.
Expected<EngineDialog::Nearest> EngineDialog::look_through(const std::vector<DrawnCurve>& curves,
                                                           const std::vector<const ExportFormat*>& refusing,
                                                           std::size_t asked, const RunContext& context) {
  constexpr std::size_t kMarkers = 16;
  std::vector<std::size_t> looked_through;
  for (std::size_t c = 0; c < curves.size(); ++c)
    if (c == 0 || curves[c].result->points.size() <= kMarkers) looked_through.push_back(c);
  const auto fits = [&](std::size_t c) { return std::ranges::any_of(curves[c].result->points, &ResultPoint::fits); };
  Nearest best{std::vector<std::optional<Place>>(refusing.size()), std::ranges::any_of(looked_through, fits),
               std::vector<std::optional<NamedStrategy>>(refusing.size())};
  for (const std::size_t c : looked_through) {
    const ResultPtr& result = curves[c].result;
    if (best.some_fit && !fits(c)) continue;
    const auto open = [&](auto) -> Expected<ResultPtr> { return result; };
    auto found = nearest_plans(refusing, nearest_order(result->points), open, context);
    if (!found) return found.error();
    for (std::size_t e = 0; e < refusing.size(); ++e) {
      if (!(*found)[e]) continue;
      const std::size_t point = (*found)[e]->point;
      auto& place = best.of[e];
      if (!place || result->points[point].time_s < curves[place->curve].result->points[place->point].time_s)
        place = {c, point};
    }
  }
  if (std::ranges::all_of(best.of, &std::optional<Place>::has_value)) return best;
  const auto split = nearest_split(*curves.front().result, asked, context);
  if (!split && split.error().code == ErrorCode::cancelled) return split.error();
  if (!split || !*split) return best;
  for (std::size_t e = 0; e < refusing.size(); ++e)
    if (!best.of[e] && offered_split(*refusing[e], *(*split)->result, best.some_fit)) best.splits[e] = **split;
  return best;
}

void EngineDialog::look_for_nearest() {
  std::vector<views::EngineTarget> targets = view_->targets();
  std::vector<const ExportFormat*> refusing;
  for (views::EngineTarget& target : targets) {
    target.looking_for_nearest = target.looked_at && !target.refusal.isEmpty();
    if (target.looking_for_nearest) refusing.push_back(find_format(target.key.toStdString()));
  }
  if (refusing.empty()) return;
  view_->set_targets(plan_words_, std::move(targets));
  drawn_ = curves();
  auto found = std::make_shared<std::optional<Expected<Nearest>>>();
  work_.tasks.start(
      kNearest, tr("Nearest plans for engines"),
      [drawn = drawn_, refusing, asked = shown_.point, found](const RunContext& context) {
        found->emplace(look_through(drawn, refusing, asked, context));
      },
      [this, refusing, found, look = ++nearest_looks_](TaskOutcome outcome) {
        if (look != nearest_looks_ || view_->targets().empty()) return;
        const bool done = outcome == TaskOutcome::finished && found->has_value() && (*found)->has_value();
        std::vector<views::EngineTarget> shown = view_->targets();
        for (views::EngineTarget& target : shown) {
          target.looking_for_nearest = false;
          for (std::size_t e = 0; done && e < refusing.size(); ++e)
            if (target.key == views::to_qt(refusing[e]->key)) tell_nearest(***found, e, target);
        }
        view_->set_targets(plan_words_, std::move(shown));
      });
}

/// What is nearest to the plan that an engine refuses, in words.
void EngineDialog::tell_nearest(const Nearest& nearest, std::size_t engine, views::EngineTarget& target) const {
  const auto& place = nearest.of[engine];
  if (!place) {
    target.nearest = (nearest.some_fit ? tr("%1 can run no plan of this curve, nor a marker, that fits.")
                                       : tr("%1 can run no plan of this curve, nor a marker."))
                         .arg(target.name);
    if (const auto& split = nearest.splits[engine])
      target.nearest +=
          QStringLiteral(" ") + tr("A split of your own that it can run comes nearest: %1, %2 and %3: %4.")
                                    .arg(views::to_qt(split->name), views::memory_text(split->point.memory_bytes),
                                         views::time_text(split->point.time_s),
                                         views::to_qt(words_beside(split->point, shown_.result->points[shown_.point])));
    target.nearest_point.reset();
    return;
  }
  const DrawnCurve& curve = drawn_[place->curve];
  const ResultPoint& point = curve.result->points[place->point];
  target.nearest_point = views::PickedPoint{curve.method, place->point};
  target.nearest_name = curve.result == shown_.result ? tr("point %1").arg(place->point) : views::to_qt(curve.title);
  target.nearest = tr("Nearest is %1, %2 and %3: %4.")
                       .arg(target.nearest_name, views::memory_text(point.memory_bytes), views::time_text(point.time_s),
                            views::to_qt(words_beside(point, shown_.result->points[shown_.point])));
}

/// Unless the method has another answer by now, in which that point is another plan.
void EngineDialog::pick(const views::PickedPoint& point) {
  const MethodRun* run = work_.runner.find(point.method);
  const auto was = std::ranges::find(drawn_, point.method, &DrawnCurve::method);
  if (run && was != drawn_.end() && run->result == was->result) return work_.document.selection().pick_point(point);
  look_for_nearest();
}

}  // namespace turnpoint::app
