// SPDX-License-Identifier: Apache-2.0
// Rows of swatch, name, value and share under a BreakdownBar, painted in one widget.
#pragma once

#include <QColor>
#include <QString>
#include <QWidget>
#include <vector>

namespace turnpoint::views {

struct PartRow {
  QColor color;  ///< invalid: a bold head without swatch
  QString name, value, share;
};

class LegendTable : public QWidget {
  Q_OBJECT
 public:
  explicit LegendTable(QWidget* parent = nullptr);
  void set_rows(std::vector<PartRow> rows);
  const std::vector<PartRow>& rows() const { return rows_; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  /// Pixels that rows of these names need beside a value as wide as `value`, without cutting anything.
  int width_for(const QStringList& names, const QString& value) const;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  int row_height() const;
  std::vector<PartRow> rows_;
};

}  // namespace turnpoint::views
