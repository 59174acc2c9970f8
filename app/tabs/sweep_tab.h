// SPDX-License-Identifier: Apache-2.0
// The Sweep tab: asks every checked method at each value of what is varied, in the background, where the user says so;
// draws answers as they come, says whose scenario they are of, and makes a value that is picked the scenario's own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/tab.h"
#include "core/search/variation.h"
#include "views/sweep/sweep_view.h"

namespace turnpoint::app {

class SweepTab : public ViewTab<views::SweepView> {
 public:
  explicit SweepTab(const TabParts& parts);

  bool running() const { return running_ != nullptr; }
  const std::shared_ptr<const Variation>& sweep() const { return sweep_; }
  bool export_to(const QString& path);  ///< .csv or .json by suffix

 protected:
  void looked_at_changed(bool looked_at) override;
  QJsonObject save_state() const override;
  void restore_state(const QJsonObject& state) override;
  void add_to(KeptWork& work) const override;
  void begin_anew() override { restore_state({}); }

 private:
  struct Mailbox;
  /// What a value that was taken shall show, once its search has found it.
  struct Wanted {
    Varied quantity = Varied::batch;
    std::int64_t value = 0;
    std::string method;  ///< as the chart's list has it
    VariedPlan plan;
  };

  VariationSubject subject() const;
  /// All that answers depend on besides the quantity, methods and price; empty: nothing is open.
  std::string subject_key(Varied quantity) const;
  std::vector<VariedMethod> methods() const;  ///< those that are checked
  void start(const VariedAxis& axis);
  void take(const std::shared_ptr<Mailbox>& mailbox);
  void ended(const std::shared_ptr<Mailbox>& mailbox, bool finished);
  void scenario_changed();
  void show();
  void show_state();
  void show_use();
  /// What keeps the picked cell from becoming the scenario; empty: nothing.
  QString why_not_used() const;
  std::vector<views::SweepOffer> offers() const;
  /// With the present price, which nothing that was searched depends on.
  std::shared_ptr<const Variation> priced() const;
  QString nothing_words() const;
  void use();
  void pick_wanted();
  void ask_export(const QString& what);

  std::shared_ptr<const Variation> sweep_;  ///< of the newest run, or of the session
  std::string subject_key_;                 ///< of that
  std::shared_ptr<Mailbox> running_;        ///< of the newest task; null: none
  std::optional<Wanted> wanted_;
  QString ended_words_;
  bool looked_at_ = false;
};

}  // namespace turnpoint::app
