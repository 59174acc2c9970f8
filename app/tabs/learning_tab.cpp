// SPDX-License-Identifier: Apache-2.0
// Methods that learn, while they do and afterwards.
#include <QTimer>

#include "app/tab.h"
#include "views/common/format.h"
#include "views/common/selection_model.h"
#include "views/learning/learning_view.h"

namespace turnpoint::app {

namespace {

/// A search tells of every iteration; eyes do not need more than this.
constexpr int kRepaint_ms = 150;

class LearningTab : public ViewTab<views::LearningView> {
 public:
  explicit LearningTab(const TabParts& parts)
      : ViewTab(parts, "learning", tr("Learning"), new views::LearningView(parts.window)) {
    timer_.setSingleShot(true);
    timer_.setInterval(kRepaint_ms);
    connect(&timer_, &QTimer::timeout, this, &LearningTab::show);
    connect(&work_.runner, &SearchRunner::learning_changed, this, &LearningTab::show_soon);
    connect(&work_.runner, &SearchRunner::runs_changed, this, &LearningTab::show_soon);
    connect(parts.selection(), &views::SelectionModel::point_changed, this, &LearningTab::show_soon);
    connect(view_, &views::LearningView::placement_requested, this, &LearningTab::pick);
    show();
  }

 protected:
  void looked_at_changed(bool looked_at) override {
    looked_at_ = looked_at;
    if (looked_at) show();
  }

 private:
  void show_soon() {
    if (looked_at_ && !timer_.isActive()) timer_.start();
  }

  void show() {
    std::vector<views::LearningView::Course> courses;
    const auto& picked = work_.document.selection().point();
    for (const MethodRun& run : work_.runner.runs()) {
      if (!run.enabled || !run.learning) continue;
      courses.push_back({run.name,
                         views::to_qt(run.label()),
                         run.state == MethodRun::State::running,
                         picked && picked->method == run.name,
                         {run.name, run.learning->points(), run.learning->begun_s(), {}}});
    }
    view_->set_courses(std::move(courses));
  }

  void pick(const std::string& method) {
    const MethodRun* run = work_.runner.find(method);
    if (!run || !run->result || run->result->points.empty()) return;
    const Result& result = *run->result;
    work_.document.selection().pick_point(
        views::PickedPoint{method, result.fastest_that_fits().value_or(result.points.size() - 1)});
  }

  QTimer timer_;
  bool looked_at_ = false;
};

}  // namespace

Tab* learning_tab(const TabParts& parts) { return new LearningTab(parts); }

}  // namespace turnpoint::app
