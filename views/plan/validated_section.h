// SPDX-License-Identifier: Apache-2.0
// The picked plan's newest run on this machine, in the Plan dock: predicted against measured time and memory.
#pragma once

#include <QWidget>
#include <memory>

#include "core/validation/validation_report.h"

class QGridLayout;
class QLabel;

namespace turnpoint::views {

class PairBar;
class SectionHead;

class ValidatedSection : public QWidget {
  Q_OBJECT
 public:
  explicit ValidatedSection(QWidget* parent = nullptr);

  /// Null: there is none; `how` says what to do about it.
  void set_report(std::shared_ptr<const ValidationReport> report, const QString& how);
  QString text() const;  ///< all its words, a line each

 signals:
  void report_wanted();  ///< the head's link was followed: the whole report

 private:
  struct Row {
    QLabel* name = nullptr;
    PairBar* bar = nullptr;
    QLabel *figures = nullptr, *error = nullptr;
  };
  Row add_row(QGridLayout* grid, int at, const QString& name);
  static void show_row(const Row& row, const ComparedValue& value, bool bytes);

  SectionHead* head_;
  Row time_, memory_;
  QLabel* facts_;
};

}  // namespace turnpoint::views
