// SPDX-License-Identifier: Apache-2.0
// Predicted against measured, a pair of bars per value: predicted filled, measured open with whiskers from q1 to q3.
// What was not measured is one hatched bar and says so.
#pragma once

#include <QAbstractScrollArea>
#include <QPointer>
#include <vector>

#include "views/common/selection_model.h"
#include "views/validation/validation_content.h"

namespace turnpoint::views {

class ValidationBars : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit ValidationBars(QWidget* parent = nullptr);

  void set_content(ValidationContentPtr content);
  void set_selection(SelectionModel* selection);

  struct Bar {
    enum class Kind { predicted, modelled, measured };
    Kind kind = Kind::predicted;
    bool other = false;  ///< of the report that is compared with
    QRectF rect;
    double whisker_from = 0, whisker_to = 0;  ///< x; equal: none
  };
  /// In the order in which they lie one above the other; positions in the whole content, not the viewport.
  std::vector<Bar> bars(int row) const;
  QRect row_rect(int row) const;       ///< in the viewport
  QString row_figures(int row) const;  ///< "776 -> 808 ms  +4.1%" as drawn
  QString tool_tip(int row) const;
  int row_at(QPoint position) const;  ///< in the viewport; -1: none
  bool is_selected(int row) const;
  QString describe() const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  struct Line {
    enum class Kind { key, heading, row, note };
    Kind kind = Kind::row;
    ValidationPart part = ValidationPart::step;
    int row = -1;  ///< or the note's
    int top = 0, height = 0;
  };
  void measure_texts();  ///< anew where the content or the font changes
  void lay_out();        ///< anew where the size changes, too
  void paint_key(QPainter& painter, const QRect& rect) const;
  void paint_heading(QPainter& painter, const Line& line, const QRect& rect) const;
  void paint_row(QPainter& painter, const Line& line, const QRect& rect) const;
  void paint_bar(QPainter& painter, const Bar& bar) const;
  void pick(int row, bool toggle);
  void follow_selection();
  const ValidationRow& row(int at) const { return content_->rows[static_cast<std::size_t>(at)]; }
  int line_height() const;

  ValidationContentPtr content_;
  QPointer<SelectionModel> selection_;
  std::vector<Line> lines_;
  std::vector<int> line_of_row_;
  std::array<double, kValidationParts> scale_{};  ///< the longest bar of each part
  int longest_name_ = 0, name_width_ = 0, figures_width_ = 0, error_width_ = 0, height_ = 0, current_ = -1;
};

}  // namespace turnpoint::views
