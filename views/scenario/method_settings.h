// SPDX-License-Identifier: Apache-2.0
// A method's parameters as boxes, over the window until it is used or left: a variant of the method with what is
// chosen. Where one of them chooses another method, that one's parameters follow.
#pragma once

#include <QFrame>
#include <functional>
#include <span>
#include <vector>

#include "core/base/options.h"

class QGridLayout;
class QLabel;
class QPushButton;

namespace turnpoint::views {

/// The method that a box chooses, whose parameters then have boxes, too.
struct OtherMethodBoxes {
  std::string_view key = {};  ///< of the option that chooses it; empty: none does
  /// Of the method with this name, which must outlive the boxes; none where it takes no parameters.
  std::function<std::span<const OptionRecord>(std::string_view name)> options = {};
};

class MethodSettings : public QFrame {
  Q_OBJECT
 public:
  /// `parameters`: what the boxes show at first, text as behind a method's name. `options` must outlive it. `changes`:
  /// a variant is changed, none is added. Parameters that no option is about stay as they are, until another method is
  /// chosen whose they would be.
  MethodSettings(const QString& title, std::span<const OptionRecord> options, const QString& parameters, bool changes,
                 QWidget* parent, OtherMethodBoxes other = {});

  QString parameters() const;

 signals:
  void accepted(const QString& parameters);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  ///< of the lists that boxes open

 private:
  /// Options of one method and what is chosen of each.
  struct Boxes {
    std::vector<OptionRecord> options;
    std::vector<double> values;

    /// Takes the parts of `text` that these options are about, and returns the others.
    QStringList take(const QStringList& parts);
  };

  std::string_view other_name() const;  ///< of the method that is chosen; empty: there is no such choice
  void choose_other();
  QStringList take_other(const QStringList& parts);
  void stay_on_screen();
  std::vector<QWidget*> add_rows(Boxes& boxes, int row);
  QWidget* make_editor(Boxes& boxes, std::size_t index);
  void show_text();
  void accept();

  Boxes own_, of_other_;
  OtherMethodBoxes other_;
  QString others_;            ///< parameters without a box
  bool list_closes_ = false;  ///< just now, by the key or click that is being handled
  QGridLayout* grid_;
  std::vector<QWidget*> other_rows_;
  QLabel* text_;
  QPushButton* add_;
};

}  // namespace turnpoint::views
