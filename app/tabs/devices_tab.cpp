// SPDX-License-Identifier: Apache-2.0
// The devices of a ratio plan; another ratio is priced on a worker.
#include "app/tab.h"
#include "core/plan/ratio_change.h"
#include "views/common/format.h"
#include "views/devices/devices_view.h"

namespace turnpoint::app {

namespace {

class DevicesTab : public ViewTab<views::DevicesView> {
 public:
  explicit DevicesTab(const TabParts& parts)
      : ViewTab(parts, "devices", tr("Devices"), new views::DevicesView(parts.window)) {
    connect(view_, &views::DevicesView::change_requested, this, &DevicesTab::change);
    connect(view_, &views::DevicesView::put_back, this, [this] { work_.tasks.cancel_purpose(kPurpose); });
  }

 protected:
  void set_plan(const std::shared_ptr<const Plan>&, const ScenarioPtr& scenario) override {
    const auto& picked = work_.loader.picked_plan();
    const RatioPlanPtr* const plan = picked ? std::get_if<RatioPlanPtr>(&*picked) : nullptr;
    scenario_ = plan && scenario ? scenario : nullptr;
    work_.tasks.cancel_purpose(kPurpose);
    view_->set_plan(scenario_ ? *plan : nullptr, scenario_);
  }

 private:
  static inline const QString kPurpose = QStringLiteral("ratio");

  void change(const RatioPlanPtr& plan, std::uint32_t cut, double ratio) {
    if (!plan || !scenario_) return;
    const auto changed = std::make_shared<std::optional<Expected<RatioPlan>>>();
    const ScenarioPtr scenario = scenario_;
    work_.tasks.start(
        kPurpose, tr("Another ratio"), [=](const RunContext&) { *changed = with_ratio(*scenario, *plan, cut, ratio); },
        [=, this](TaskOutcome outcome) {
          if (outcome != TaskOutcome::finished || !*changed) return;
          const Expected<RatioPlan>& made = **changed;
          view_->set_changed(made ? std::make_shared<const RatioPlan>(*made) : nullptr,
                             made ? QString() : views::to_qt(made.error().message()));
        },
        Preempt::let_it_finish);
  }

  ScenarioPtr scenario_;
};

}  // namespace

Tab* devices_tab(const TabParts& parts) { return new DevicesTab(parts); }

}  // namespace turnpoint::app
