// SPDX-License-Identifier: Apache-2.0
// The Why tab: what the picked plan is, what choices for an operator, its layer or the whole plan would cost, and how
// it differs from other plans: marks of its curve, the plan picked before, pinned ones, those of other methods.
#pragma once

#include <QTimer>
#include <vector>

#include "app/tab.h"
#include "views/explain/why_view.h"

namespace turnpoint::app {

class WhyTab : public ViewTab<views::WhyView> {
  Q_OBJECT
 public:
  explicit WhyTab(const TabParts& parts);

 protected:
  void set_model(const ScenarioPtr& scenario) override;
  void looked_at_changed(bool looked_at) override;

 private:
  static constexpr int kRest_ms = 200;  ///< a plan that is stepped over is not asked about

  /// Another plan that this one can be put beside.
  struct Other {
    QString text, why_not;
    Question question;
  };
  void follow_plan();
  void follow_operators();
  void choose_part(int index);
  void choose_every_layer();
  void ask(views::WhyQuestion::Of of, int index);
  void ask_again();
  void show();
  void show_questions();
  std::vector<Other> others() const;
  void add_pinned(std::vector<Other>& all) const;
  void add_methods(std::vector<Other>& all) const;
  Question plan_question() const;
  Question choice_question(std::size_t index) const;
  QString nothing_words() const;

  views::PlanPanel& panel_;
  bool looked_at_ = false;
  PlacedPlan plan_, before_;
  std::vector<AskedPart> parts_;
  int part_ = 0;
  int every_layer_ = -1;  ///< which of them is the picked operator of every layer; -1: none
  std::vector<Other> others_;
  views::WhyQuestion::Of asked_of_ = views::WhyQuestion::Of::plan;
  int asked_index_ = 0;
  std::optional<Question> again_;  ///< what was asked of the plan before, for this one
  QTimer rest_;
};

}  // namespace turnpoint::app
