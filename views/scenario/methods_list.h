// SPDX-License-Identifier: Apache-2.0
// The list widget of MethodsModel: its swatches are the chart's legend; a running row carries a cancel cross.
#pragma once

#include <QListView>

namespace turnpoint::views {

class MethodsList : public QListView {
  Q_OBJECT
 public:
  explicit MethodsList(QWidget* parent = nullptr);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  /// Where the cancel cross of a row is; for tests and hit testing.
  QRect cancel_rect(const QModelIndex& index) const;
  void setModel(QAbstractItemModel* model) override;
  /// Methods that are off lie folded away, until the list changes or is unfolded: one that is switched off under the
  /// pointer stays where it is.
  void set_folded(bool folded);
  void fold_again();

 signals:
  void unused_changed(int methods);  ///< how many there are to fold
  void cancel_requested(const QString& method);
  void method_clicked(const QString& method);
  /// The settings of a method that has some, to add a variant; of a split or variant of the user's own, to change it.
  void settings_requested(const QString& method);
  void remove_requested(const QString& method);
  void variant_requested(const QString& name);  ///< "fsdp:group=node"

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  bool is_unused(int row) const;
  void show_used();

  bool folded_ = true;
};

}  // namespace turnpoint::views
