// SPDX-License-Identifier: Apache-2.0
// The head of a block in a dock: small bold capitals, a hairline, and a value or link at the right.
#pragma once

#include <QWidget>

namespace turnpoint::views {

class SectionHead : public QWidget {
  Q_OBJECT
 public:
  explicit SectionHead(const QString& title, QWidget* parent = nullptr);
  void set_title(const QString& title);
  void set_value(const QString& value);
  /// Makes the value a link that emits `clicked`; not clickable while `enabled` is false.
  void set_link(const QString& text, bool enabled);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void clicked();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QRect value_rect() const;
  QString title_, value_;
  bool link_ = false, link_enabled_ = false;
};

/// The secondary size of the sheet, 0.92 of the widget's font.
QFont secondary_font(const QFont& base);

}  // namespace turnpoint::views
