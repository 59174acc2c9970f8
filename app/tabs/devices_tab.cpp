// SPDX-License-Identifier: Apache-2.0
// The devices of a ratio plan; another ratio is priced on a worker, and kept as a variant of the method.
#include "app/tab.h"
#include "app/voice.h"
#include "core/plan/ratio_change.h"
#include "core/search/registry.h"
#include "views/common/format.h"
#include "views/devices/devices_view.h"

namespace turnpoint::app {

namespace {

class DevicesTab : public ViewTab<views::DevicesView> {
 public:
  explicit DevicesTab(const TabParts& parts)
      : ViewTab(parts, "devices", tr("Devices"), new views::DevicesView(parts.window)) {
    connect(view_, &views::DevicesView::change_requested, this, &DevicesTab::change);
    connect(view_, &views::DevicesView::keep_requested, this, &DevicesTab::keep);
    connect(view_, &views::DevicesView::put_back, this, [this] { work_.tasks.cancel_purpose(kPurpose); });
  }

 protected:
  void set_plan(const std::shared_ptr<const Plan>&, const ScenarioPtr& scenario) override {
    const auto& picked = work_.loader.picked_plan();
    const RatioPlanPtr* const plan = picked ? std::get_if<RatioPlanPtr>(&*picked) : nullptr;
    scenario_ = plan && scenario ? scenario : nullptr;
    if (scenario_) method_ = work_.loader.result()->method, parameters_ = work_.loader.result()->method_options;
    work_.tasks.cancel_purpose(kPurpose);
    view_->set_plan(scenario_ ? *plan : nullptr, scenario_);
  }

 private:
  static inline const QString kPurpose = QStringLiteral("ratio");

  void change(const RatioPlanPtr& plan, const RatioMoves& moves) {
    if (!plan || !scenario_) return;
    const auto changed = std::make_shared<std::optional<Expected<RatioPlan>>>();
    const ScenarioPtr scenario = scenario_;
    const std::string method = method_, parameters = parameters_;
    work_.tasks.start(
        kPurpose, tr("Another ratio"),
        [=](const RunContext& context) {
          *changed = plan_moved_by_hand(method, parameters, *scenario, *plan, moves, context);
        },
        [=, this](TaskOutcome outcome) {
          if (outcome != TaskOutcome::finished || !*changed) return;
          const Expected<RatioPlan>& made = **changed;
          view_->set_changed(made ? std::make_shared<const RatioPlan>(*made) : nullptr, moves,
                             made ? QString() : views::to_qt(made.error().message()));
        },
        Preempt::let_it_finish);
  }

  /// A row as every split of one's own is: the search that it begins makes the same plan again.
  void keep(const RatioMoves& moves) {
    if (!scenario_ || moves.empty()) return;
    const std::string name = method_ + ':' + with_moves_by_hand(parameters_, moves);
    if (const auto added = work_.runner.add_split(name); !added)
      return voice_.report(added.error(), tr("Keep as a plan"));
    work_.keeper.want(name);
  }

  ScenarioPtr scenario_;
  std::string method_, parameters_;  ///< that the plan is from
};

}  // namespace

Tab* devices_tab(const TabParts& parts) { return new DevicesTab(parts); }

}  // namespace turnpoint::app
