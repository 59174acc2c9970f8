// SPDX-License-Identifier: Apache-2.0
// The picked plan layer by layer in practitioners' words, in the Plan dock: folded where it is long.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "core/plan/layer_words.h"

class QLabel;

namespace turnpoint::views {

class SectionHead;

class LayersSection : public QWidget {
  Q_OBJECT
 public:
  static constexpr std::size_t kShort = 3;  ///< so many lines are open until they are folded

  explicit LayersSection(QWidget* parent = nullptr);
  /// Null: the section hides. What was opened or folded by hand stays so for the plans that follow.
  void set_plan(std::shared_ptr<const Plan> plan, const ModelPtr& model);
  SectionHead* head() const { return head_; }
  QString text() const;  ///< on show, a line each; empty: folded

 protected:
  void changeEvent(QEvent* event) override;

 private:
  bool open() const;
  void show_lines();

  SectionHead* head_;
  QLabel* lines_label_;
  std::shared_ptr<const Plan> plan_;
  ModelPtr model_;
  std::vector<LayerWords> lines_;
  std::optional<bool> by_hand_;
};

}  // namespace turnpoint::views
