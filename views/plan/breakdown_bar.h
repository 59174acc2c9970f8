// SPDX-License-Identifier: Apache-2.0
// One horizontal stacked bar on a fixed scale; what is left of the scale is shown as free.
#pragma once

#include <QColor>
#include <QString>
#include <QWidget>
#include <vector>

namespace turnpoint::views {

struct BarPart {
  QColor color;
  double value = 0;
  QString label;  ///< for the tool tip: "Parameters 1.2 GiB"
};

class BreakdownBar : public QWidget {
  Q_OBJECT
 public:
  explicit BreakdownBar(QWidget* parent = nullptr);
  /// `scale` 0: the parts fill the bar. A sum beyond the scale grows the scale and marks where it was.
  void set_parts(std::vector<BarPart> parts, double scale = 0, const QString& free_text = {});
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {60, 16}; }
  const std::vector<BarPart>& parts() const { return parts_; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  double full() const;
  std::vector<BarPart> parts_;
  double scale_ = 0;
  QString free_text_;
};

}  // namespace turnpoint::views
