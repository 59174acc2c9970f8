// SPDX-License-Identifier: Apache-2.0
// The window that shows what each engine can be told of the picked plan. It follows the pick while it is open; what it
// shows is worked out in the background.
#pragma once

#include <QDialog>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/export/format.h"
#include "core/search/explain/told_answer.h"

namespace turnpoint::views {
class EngineView;
struct EngineTarget;
struct PickedPoint;
}  // namespace turnpoint::views

namespace turnpoint::app {

class Exports;
struct Workspace;

/// What is drawn of a method.
struct DrawnCurve {
  std::string method, title;
  ResultPtr result;
  friend bool operator==(const DrawnCurve&, const DrawnCurve&) = default;
};

class EngineDialog : public QDialog {
  Q_OBJECT
 public:
  EngineDialog(Workspace& work, Exports& exports, QWidget* window);

  views::EngineView* view() const { return view_; }
  /// The picked plan has changed, or something that is drawn.
  void follow();

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;  ///< what is closed is not worked on

 private:
  struct Picked {
    ResultPtr result;
    std::size_t point = 0;
    bool sketch = false;
    friend bool operator==(const Picked&, const Picked&) = default;
  };
  struct Place {
    std::size_t curve = 0, point = 0;
  };
  /// Of the curves that were looked through.
  struct Nearest {
    std::vector<std::optional<Place>> of;  ///< of each engine; nullopt: there is none
    bool some_fit = false;                 ///< among the plans that were looked through
    /// The split of the user's own that comes nearest to the plan, where an engine has none of these and can run it.
    std::vector<std::optional<NamedStrategy>> splits;
  };

  static Expected<Nearest> look_through(const std::vector<DrawnCurve>& curves,
                                        const std::vector<const ExportFormat*>& refusing, std::size_t asked,
                                        const RunContext& context);
  Picked picked_now() const;
  std::vector<DrawnCurve> curves() const;
  void look();
  void show_stopped();
  void look_for_nearest();
  void tell_nearest(const Nearest& nearest, std::size_t engine, views::EngineTarget& target) const;
  void pick(const views::PickedPoint& point);

  Workspace& work_;
  Exports& exports_;
  views::EngineView* view_;
  Picked shown_;                           ///< whose plan is shown, or looked at
  QString plan_words_;                     ///< which one that is
  std::vector<DrawnCurve> drawn_;          ///< among which the nearest was looked for, the picked one first
  quint64 looks_ = 0, nearest_looks_ = 0;  ///< so many were begun: the last one alone is shown
};

}  // namespace turnpoint::app
