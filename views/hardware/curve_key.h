// SPDX-License-Identifier: Apache-2.0
// Says what the marks and lines of the chart are; as many rows as it needs.
#pragma once

#include <QColor>
#include <QWidget>
#include <vector>

namespace turnpoint::views {

struct KeyEntry {
  enum class Mark { line, dashed, dotted, point, bar, fall };
  Mark mark = Mark::line;
  QColor color;
  QString text;
};

class CurveKey : public QWidget {
  Q_OBJECT
 public:
  explicit CurveKey(QWidget* parent = nullptr);
  void set_entries(std::vector<KeyEntry> entries);
  const std::vector<KeyEntry>& entries() const { return entries_; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<QRect> places(int width) const;
  std::vector<KeyEntry> entries_;
};

}  // namespace turnpoint::views
