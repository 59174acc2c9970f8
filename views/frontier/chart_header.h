// SPDX-License-Identifier: Apache-2.0
// The line above the chart: title, what is drawn, its state, and the toggles; narrow windows get the toggles as a menu.
#pragma once

#include <QWidget>

class QAction;
class QHBoxLayout;
class QLabel;
class QToolButton;

namespace turnpoint::views {

class ChartHeader : public QWidget {
  Q_OBJECT
 public:
  explicit ChartHeader(QWidget* parent = nullptr);
  /// `fit` is a plain action, the others are checkable.
  void set_actions(QAction* fit, const QList<QAction*>& toggles);
  void set_subtitle(const QString& text);
  /// "computing", "coarse +-0.2%"; empty when exact.
  void set_state(const QString& text);
  /// A thin line under the header: 0..1, negative for busy without a fraction, nullopt-like NaN for none.
  void set_progress(double fraction, bool active);
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void arrange();
  void recolour();

  QLabel *title_, *subtitle_, *state_;
  QHBoxLayout* row_;
  QList<QToolButton*> toggles_;
  QToolButton* menu_ = nullptr;
  double fraction_ = -1;
  bool active_ = false;
};

}  // namespace turnpoint::views
