// SPDX-License-Identifier: Apache-2.0
// The window that shows what each engine can be told of the picked plan. It follows the pick while it is open; what it
// shows is worked out in the background.
#pragma once

#include <QDialog>
#include <optional>
#include <string>
#include <vector>

#include "core/export/format.h"

namespace turnpoint::views {
class EngineView;
struct EngineTarget;
}  // namespace turnpoint::views

namespace turnpoint::app {

class Exports;
struct Workspace;

class EngineDialog : public QDialog {
  Q_OBJECT
 public:
  EngineDialog(Workspace& work, Exports& exports, QWidget* window);

  /// What is drawn of a method, the picked one first.
  struct Curve {
    std::string method, title;
    ResultPtr result;
  };
  struct Place {
    std::size_t curve = 0, point = 0;
  };
  using Nearest = std::optional<Place>;  ///< nullopt: there is none

  views::EngineView* view() const { return view_; }
  /// The picked plan has changed, or its result.
  void follow();

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;  ///< what is hidden is not worked on

 private:
  void look(const ExportSource& source);
  void look_for_nearest();
  void tell_nearest(const Nearest& nearest, const std::vector<Curve>& drawn, views::EngineTarget& target) const;
  std::vector<Curve> curves() const;

  Workspace& work_;
  Exports& exports_;
  views::EngineView* view_;
  ExportSource shown_;  ///< whose plan is shown
  QString plan_words_;  ///< which one that is
};

}  // namespace turnpoint::app
