// SPDX-License-Identifier: Apache-2.0
#include "views/validation/validation_bars.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {

constexpr int kSide = 12, kGap = 10, kRowPadding = 8, kPairPadding = 14, kLeastBars = 60;
constexpr double kBar = 6, kBetween = 1.5, kWhisker = 4;
constexpr int kLongestName = 260, kLeastName = 56;

bool large(const ComparedValue& value) {
  const auto error = value.error();
  return error && std::abs(*error) > kLargeError;
}

}  // namespace

ValidationBars::ValidationBars(QWidget* parent) : QAbstractScrollArea(parent) {
  setObjectName(QStringLiteral("validation_bars"));
  setAccessibleName(tr("Predicted against measured"));
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setMouseTracking(true);
  viewport()->setBackgroundRole(QPalette::Base);
  setMinimumSize(240, 80);
}

int ValidationBars::line_height() const { return fontMetrics().height(); }

void ValidationBars::set_content(ValidationContentPtr content) {
  const bool same = content_ && content && content_->report == content->report;
  content_ = std::move(content);
  current_ = -1;
  if (!same) verticalScrollBar()->setValue(0);
  measure_texts();
  lay_out();
  setAccessibleDescription(describe());
}

void ValidationBars::set_selection(SelectionModel* selection) {
  if (selection_) selection_->disconnect(this);
  selection_ = selection;
  if (selection_) {
    connect(selection_, &SelectionModel::operators_changed, this, &ValidationBars::follow_selection);
    connect(selection_, &SelectionModel::hovered_operator_changed, viewport(), qOverload<>(&QWidget::update));
  }
}

void ValidationBars::measure_texts() {
  scale_ = {};
  longest_name_ = figures_width_ = 0;
  if (!content_) return;
  const QFontMetrics metrics = fontMetrics();
  QFont bold = font();
  bold.setBold(true);
  const QFontMetrics bold_metrics(bold);
  error_width_ = metrics.horizontalAdvance(tr("modelled"));
  for (const ValidationRow& at : content_->rows) {
    double& scale = scale_[static_cast<std::size_t>(at.part)];
    scale = std::max(scale, at.largest());
    longest_name_ = std::max(longest_name_, metrics.horizontalAdvance(at.name));
    for (const auto& value : {at.value, at.other}) {
      if (value || content_->other)
        figures_width_ = std::max(figures_width_, metrics.horizontalAdvance(figures_text(at, value)));
      if (!value) continue;
      const QFontMetrics& drawn = large(*value) ? bold_metrics : metrics;
      error_width_ = std::max(error_width_, drawn.horizontalAdvance(error_text(*value, at.bytes())));
    }
  }
}

void ValidationBars::lay_out() {
  lines_.clear();
  line_of_row_.clear();
  height_ = 0;
  if (!content_) {
    verticalScrollBar()->setRange(0, 0);
    viewport()->update();
    return;
  }
  const int line = line_height(), row_height = content_->other ? 2 * line + kPairPadding : line + kRowPadding;
  const auto add = [this](Line made) {
    made.top = height_;
    height_ += made.height;
    lines_.push_back(made);
  };
  add({Line::Kind::key, ValidationPart::step, -1, 0, line + 6});
  for (std::size_t i = 0; i < content_->rows.size(); ++i) {
    const ValidationRow& at = content_->rows[i];
    if (i == 0 || content_->rows[i - 1].part != at.part)
      add({Line::Kind::heading, at.part, -1, 0, line + (i == 0 ? 8 : 20)});
    line_of_row_.push_back(static_cast<int>(lines_.size()));
    add({Line::Kind::row, at.part, static_cast<int>(i), 0, row_height});
  }
  const int width = viewport()->width();
  name_width_ = std::min({longest_name_ + 4, kLongestName, width * 3 / 10});
  // In a narrow window names are cut before bars reach into the figures.
  const int left_over = width - 2 * kSide - 3 * kGap - error_width_ - figures_width_ - kLeastBars;
  name_width_ = std::min(name_width_, std::max(kLeastName, left_over));
  const int wrap = std::max(100, width - 2 * kSide);
  for (qsizetype i = 0; i < content_->notes.size(); ++i) {
    if (i == 0) add({Line::Kind::heading, ValidationPart::step, -2, 0, line + 20});
    const QFontMetrics small(secondary_font(font()));
    const int needed =
        small.boundingRect(QRect(0, 0, wrap, 10000), Qt::TextWordWrap | Qt::AlignLeft, content_->notes[i]).height();
    add({Line::Kind::note, ValidationPart::step, static_cast<int>(i), 0, needed + 4});
  }
  height_ += kRowPadding;
  verticalScrollBar()->setRange(0, std::max(0, height_ - viewport()->height()));
  verticalScrollBar()->setPageStep(viewport()->height());
  verticalScrollBar()->setSingleStep(row_height);
  viewport()->update();
}

std::vector<ValidationBars::Bar> ValidationBars::bars(int at) const {
  const ValidationRow& here = row(at);
  const Line& line = lines_[static_cast<std::size_t>(line_of_row_[static_cast<std::size_t>(at)])];
  const double scale = scale_[static_cast<std::size_t>(here.part)];
  const double left = kSide + name_width_ + kGap;
  const double right = viewport()->width() - kSide - error_width_ - kGap - figures_width_ - kGap;
  const double whole = std::max(1.0, right - left);
  const auto length = [&](double value) { return scale > 0 ? std::max(1.0, whole * value / scale) : 1.0; };
  std::vector<Bar> made;
  const int pairs = content_->other ? 2 : 1;
  const int padding = content_->other ? kPairPadding : kRowPadding;
  const double pair_height = 2 * kBar + kBetween, slot = static_cast<double>(line.height - padding) / pairs;
  for (int pair = 0; pair < pairs; ++pair) {
    const auto& value = pair == 0 ? here.value : here.other;
    if (!value) continue;
    const double top = line.top + padding / 2.0 + pair * slot + (slot - pair_height) / 2;
    Bar bar;
    bar.other = pair == 1;
    bar.kind = value->measured ? Bar::Kind::predicted : Bar::Kind::modelled;
    bar.rect = QRectF(left, value->measured ? top : top + (pair_height - kBar) / 2, length(value->predicted), kBar);
    if (value->predicted > 0 || value->measured) made.push_back(bar);
    if (!value->measured) continue;
    bar.kind = Bar::Kind::measured;
    bar.rect = QRectF(left, top + kBar + kBetween, length(*value->measured), kBar);
    if (value->q3 > value->q1) {
      bar.whisker_from = left + length(value->q1);
      bar.whisker_to = left + length(value->q3);
    }
    made.push_back(bar);
  }
  return made;
}

QRect ValidationBars::row_rect(int at) const {
  const Line& line = lines_[static_cast<std::size_t>(line_of_row_[static_cast<std::size_t>(at)])];
  return {0, line.top - verticalScrollBar()->value(), viewport()->width(), line.height};
}

QString ValidationBars::row_figures(int at) const {
  const ValidationRow& here = row(at);
  return figures_text(here, here.value) + (here.value ? u' ' + error_text(*here.value, here.bytes()) : QString());
}

QString ValidationBars::tool_tip(int at) const {
  const ValidationRow& here = row(at);
  QStringList lines{here.name};
  for (const auto& value : {here.value, here.other}) {
    if (!value) continue;
    if (lines.size() > 1) lines << tr("Compared with:");
    lines << tr("predicted %1").arg(value_text(here, value->predicted));
    if (!value->measured) {
      lines << tr("not measured here: modelled");
      continue;
    }
    lines << tr("measured %1, prediction %2").arg(value_text(here, *value->measured), error_text(*value, here.bytes()));
    if (value->q3 > value->q1)
      lines << tr("quartiles %1 to %2").arg(value_text(here, value->q1), value_text(here, value->q3));
  }
  if (here.op.valid()) lines << tr("Click picks the operator in all views");
  return lines.join(u'\n');
}

int ValidationBars::row_at(QPoint position) const {
  const int y = position.y() + verticalScrollBar()->value();
  for (const Line& line : lines_)
    if (line.kind == Line::Kind::row && y >= line.top && y < line.top + line.height) return line.row;
  return -1;
}

bool ValidationBars::is_selected(int at) const {
  return selection_ && row(at).op.valid() && selection_->operators().contains(row(at).op);
}

void ValidationBars::paint_heading(QPainter& painter, const Line& line, const QRect& rect) const {
  const ThemeColors& colors = theme_colors(palette());
  QFont small = secondary_font(font());
  small.setBold(true);
  painter.setFont(small);
  painter.setPen(colors.secondary);
  const QRect text = rect.adjusted(kSide, 0, -kSide, -5);
  const QString title =
      (line.row == -2 ? tr("Notes") : part_text(line.part, content_ && content_->report->by_device())).toUpper();
  painter.drawText(text, Qt::AlignLeft | Qt::AlignBottom, title);
  const int used = painter.fontMetrics().horizontalAdvance(title);
  QString state;
  if (line.row != -2) {
    const auto part = static_cast<std::size_t>(line.part);
    const int measured = content_->measured[part], count = content_->count[part];
    state = measured == count ? tr("measured")
            : measured == 0   ? tr("modelled, not measured here")
                              : tr("%1 of %2 measured").arg(measured).arg(count);
  }
  painter.setFont(secondary_font(font()));
  painter.drawText(text, Qt::AlignRight | Qt::AlignBottom, state);
  const int states = painter.fontMetrics().horizontalAdvance(state);
  painter.setPen(colors.border);
  const int y = text.bottom() - painter.fontMetrics().height() / 2 + 1;
  painter.drawLine(text.left() + used + 8, y, text.right() - (states > 0 ? states + 8 : 0), y);
}

void ValidationBars::paint_bar(QPainter& painter, const Bar& bar) const {
  const ThemeColors& colors = theme_colors(palette());
  const QColor color = bar.other ? colors.pinned : colors.accent;
  painter.setBrush(Qt::NoBrush);
  if (bar.kind == Bar::Kind::predicted) {
    painter.fillRect(bar.rect, color);
  } else if (bar.kind == Bar::Kind::modelled) {
    painter.fillRect(bar.rect, QBrush(color, Qt::BDiagPattern));
    painter.setPen(QPen(color, 1, Qt::DotLine));
    painter.drawRect(bar.rect.adjusted(0.5, 0.5, -0.5, -0.5));
  } else {
    painter.fillRect(bar.rect, colors.base);
    painter.setPen(QPen(color, 1.2));
    painter.drawRect(bar.rect.adjusted(0.5, 0.5, -0.5, -0.5));
    if (bar.whisker_to <= bar.whisker_from) return;
    painter.setPen(QPen(colors.text, 1));
    const double y = bar.rect.center().y();
    painter.drawLine(QPointF(bar.whisker_from, y), QPointF(bar.whisker_to, y));
    for (const double x : {bar.whisker_from, bar.whisker_to})
      painter.drawLine(QPointF(x, y - kWhisker / 2 - 0.5), QPointF(x, y + kWhisker / 2 + 0.5));
  }
}

void ValidationBars::paint_key(QPainter& painter, const QRect& rect) const {
  const ThemeColors& colors = theme_colors(palette());
  painter.setFont(secondary_font(font()));
  constexpr int kSwatch = 22;
  int x = kSide;
  const auto entry = [&](Bar bar, const QString& text) {
    const int wide = painter.fontMetrics().horizontalAdvance(text);
    if (x + kSwatch + 6 + wide > rect.width() - kSide) return;
    bar.rect = QRectF(x, rect.center().y() - kBar / 2, kSwatch, kBar);
    if (bar.whisker_to > 0) bar.whisker_from = x + kSwatch - 8, bar.whisker_to = x + kSwatch + 2;
    paint_bar(painter, bar);
    painter.setPen(colors.secondary);
    painter.drawText(QRect(x + kSwatch + 6, rect.top(), wide + 4, rect.height()), Qt::AlignLeft | Qt::AlignVCenter,
                     text);
    x += kSwatch + 6 + wide + 16;
  };
  entry({Bar::Kind::predicted, false, {}, 0, 0}, tr("predicted"));
  entry({Bar::Kind::measured, false, {}, 0, 1}, tr("measured, quartiles"));
  entry({Bar::Kind::modelled, false, {}, 0, 0}, tr("modelled"));
}

void ValidationBars::paint_row(QPainter& painter, const Line& line, const QRect& rect) const {
  const ThemeColors& colors = theme_colors(palette());
  const ValidationRow& here = row(line.row);
  const bool hovered = selection_ && here.op.valid() && selection_->hovered_operator() == here.op;
  if (is_selected(line.row))
    painter.fillRect(rect, colors.accent_background);
  else if (hovered)
    painter.fillRect(rect, colors.alternate);
  if (line.row == current_ && hasFocus()) {
    painter.setPen(QPen(colors.accent, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect.adjusted(2, 0, -3, -1));
  }
  painter.setFont(font());
  painter.setPen(colors.text);
  const QRect name(kSide, rect.top(), name_width_, rect.height());
  painter.drawText(name, Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(here.name, Qt::ElideMiddle, name.width()));
  for (Bar bar : bars(line.row)) {
    bar.rect.translate(0, -verticalScrollBar()->value());
    paint_bar(painter, bar);
  }
  const int pairs = content_->other ? 2 : 1, padding = content_->other ? kPairPadding : kRowPadding;
  const int slot = (rect.height() - padding) / pairs;
  for (int pair = 0; pair < pairs; ++pair) {
    const auto& value = pair == 0 ? here.value : here.other;
    const QRect error(rect.right() - kSide - error_width_, rect.top() + padding / 2 + pair * slot, error_width_, slot);
    const QRect figures(error.left() - kGap - figures_width_, error.top(), figures_width_, slot);
    painter.setFont(font());
    painter.setPen(pair == 0 && value ? colors.text : colors.secondary);
    painter.drawText(figures, Qt::AlignRight | Qt::AlignVCenter, figures_text(here, value));
    if (!value) continue;
    const bool wrong = large(*value);
    QFont weight = font();
    weight.setBold(wrong);
    painter.setFont(weight);
    painter.setPen(wrong ? colors.warning : colors.secondary);
    painter.drawText(error, Qt::AlignRight | Qt::AlignVCenter, error_text(*value, here.bytes()));
  }
}

void ValidationBars::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const ThemeColors& colors = theme_colors(palette());
  painter.fillRect(viewport()->rect(), colors.base);
  if (!content_) return;
  const int shift = verticalScrollBar()->value();
  for (const Line& line : lines_) {
    const QRect rect(0, line.top - shift, viewport()->width(), line.height);
    if (rect.bottom() < 0 || rect.top() > viewport()->height()) continue;
    if (line.kind == Line::Kind::key) {
      paint_key(painter, rect);
    } else if (line.kind == Line::Kind::heading) {
      paint_heading(painter, line, rect);
    } else if (line.kind == Line::Kind::row) {
      paint_row(painter, line, rect);
    } else {
      painter.setFont(secondary_font(font()));
      painter.setPen(colors.secondary);
      painter.drawText(rect.adjusted(kSide, 0, -kSide, 0), Qt::TextWordWrap | Qt::AlignLeft, content_->notes[line.row]);
    }
  }
}

void ValidationBars::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  lay_out();
}

void ValidationBars::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::FontChange) {
    measure_texts();
    lay_out();
  }
  if (event->type() == QEvent::PaletteChange) viewport()->update();
}

void ValidationBars::pick(int at, bool toggle) {
  current_ = at;
  viewport()->update();
  if (at < 0) return;
  if (!selection_ || !row(at).op.valid()) return;
  if (toggle)
    selection_->toggle_operator(row(at).op);
  else
    selection_->pick_operators({row(at).op});
}

void ValidationBars::follow_selection() {
  viewport()->update();
  if (!content_ || !selection_ || selection_->operators().size() != 1) return;
  // Picked elsewhere: come into sight. What is in sight already stays where it is.
  for (std::size_t i = 0; i < content_->rows.size(); ++i) {
    if (!is_selected(static_cast<int>(i))) continue;
    const QRect rect = row_rect(static_cast<int>(i));
    if (rect.top() < 0 || rect.bottom() > viewport()->height())
      verticalScrollBar()->setValue(verticalScrollBar()->value() + rect.center().y() - viewport()->height() / 2);
    return;
  }
}

void ValidationBars::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  pick(row_at(event->pos()), event->modifiers() & Qt::ControlModifier);
}

void ValidationBars::mouseMoveEvent(QMouseEvent* event) {
  const int at = row_at(event->pos());
  if (selection_) selection_->hover_operator(at >= 0 ? row(at).op : OperatorId());
}

void ValidationBars::keyPressEvent(QKeyEvent* event) {
  const int count = content_ ? static_cast<int>(content_->rows.size()) : 0;
  int next = current_;
  switch (event->key()) {
    case Qt::Key_Down: next = std::min(count - 1, current_ + 1); break;
    case Qt::Key_Up: next = std::max(0, current_ - 1); break;
    case Qt::Key_Home: next = 0; break;
    case Qt::Key_End: next = count - 1; break;
    default: QAbstractScrollArea::keyPressEvent(event); return;
  }
  if (count == 0) return;
  pick(next, false);
  const QRect rect = row_rect(next);
  if (rect.top() < 0) verticalScrollBar()->setValue(verticalScrollBar()->value() + rect.top());
  if (rect.bottom() > viewport()->height())
    verticalScrollBar()->setValue(verticalScrollBar()->value() + rect.bottom() - viewport()->height());
}

bool ValidationBars::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    const int at = row_at(help->pos());
    if (at >= 0)
      QToolTip::showText(help->globalPos(), tool_tip(at), viewport(), row_rect(at));
    else
      QToolTip::hideText();
    return true;
  }
  if (event->type() == QEvent::Leave && selection_) selection_->hover_operator(OperatorId());
  return QAbstractScrollArea::viewportEvent(event);
}

QString ValidationBars::describe() const {
  if (!content_) return {};
  QStringList words{content_->title, content_->verdict};
  for (std::size_t i = 0; i < std::min<std::size_t>(content_->rows.size(), 3); ++i)
    words << row(static_cast<int>(i)).name + u' ' + row_figures(static_cast<int>(i));
  return words.join(QStringLiteral(". "));
}

}  // namespace turnpoint::views
