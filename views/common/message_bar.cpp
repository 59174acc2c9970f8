// SPDX-License-Identifier: Apache-2.0
#include "views/common/message_bar.h"

#include <QApplication>
#include <QClipboard>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "views/common/icons.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {
constexpr int kNoteStays_ms = 8000;
constexpr qsizetype kLongestHead = 140, kShortestHead = 20;

/// What is bold and what is not: of a long text (one that lists all that it would have taken) its first part, up to
/// where it may be cut.
std::pair<QString, QString> head_and_rest(const QString& what) {
  if (what.size() <= kLongestHead) return {what, {}};
  qsizetype cut = -1;
  for (const QString& mark : {QStringLiteral(". "), QStringLiteral("; "), QStringLiteral(": "), QStringLiteral(", ")})
    if (const auto at = what.indexOf(mark, kShortestHead); at > 0 && at < kLongestHead) {
      cut = at + 1;
      break;
    }
  if (cut < 0) return {what, {}};
  return {what.left(cut), what.mid(cut).trimmed()};
}
}  // namespace

MessageBar::MessageBar(QWidget* parent) : QFrame(parent) {
  setObjectName(QStringLiteral("message_bar"));
  setAccessibleName(tr("Messages"));
  icon_ = new QLabel(this);
  what_ = new QLabel(this);
  what_->setObjectName(QStringLiteral("message_what"));
  where_ = new QLabel(this);
  where_->setObjectName(QStringLiteral("message_where"));
  for (QLabel* label : {what_, where_}) {
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  QFont bold = font();
  bold.setBold(true);
  what_->setFont(bold);
  position_ = new QLabel(this);
  act_ = new QToolButton(this);
  act_->setObjectName(QStringLiteral("message_action"));
  copy_ = new QToolButton(this);
  copy_->setText(tr("Copy"));
  copy_->setAccessibleName(tr("Copy message"));
  dismiss_ = new QToolButton(this);
  dismiss_->setIcon(themed_icon(QStringLiteral("close")));
  dismiss_->setToolTip(tr("Dismiss"));
  dismiss_->setAccessibleName(tr("Dismiss message"));
  dismiss_->setAutoRaise(true);
  leave_ = new QTimer(this);
  leave_->setSingleShot(true);
  leave_->setInterval(kNoteStays_ms);

  auto* lines = new QVBoxLayout;
  lines->setSpacing(2);
  lines->addWidget(what_);
  lines->addWidget(where_);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->setSpacing(8);
  row->addWidget(icon_, 0, Qt::AlignTop);
  row->addLayout(lines, 1);
  row->addWidget(position_);
  row->addWidget(act_);
  row->addWidget(copy_);
  row->addWidget(dismiss_);

  connect(act_, &QToolButton::clicked, this, &MessageBar::act);
  connect(copy_, &QToolButton::clicked, this, &MessageBar::copy);
  connect(dismiss_, &QToolButton::clicked, this, &MessageBar::dismiss);
  connect(leave_, &QTimer::timeout, this, &MessageBar::dismiss);
  hide();
}

void MessageBar::show_message(Message message) {
  const auto same = [&](const Message& m) { return m.what == message.what && m.where == message.where; };
  std::erase_if(queue_, same);
  const auto at = std::find_if(queue_.begin(), queue_.end(), [&](const Message& m) { return m.kind <= message.kind; });
  queue_.insert(at, std::move(message));
  refresh();
}

void MessageBar::clear_errors(const QString& about) {
  const auto gone = std::erase_if(
      queue_, [&](const Message& m) { return m.kind != Message::Kind::note && !about.isEmpty() && m.about == about; });
  if (gone > 0) refresh();
}

void MessageBar::dismiss() {
  if (queue_.empty()) return;
  const auto dismissed = std::move(queue_.front().dismissed);
  queue_.pop_front();
  refresh();
  if (dismissed) dismissed();
}

void MessageBar::act() {
  if (queue_.empty() || !queue_.front().act) return;
  const auto act = std::move(queue_.front().act);
  queue_.pop_front();
  refresh();
  act();
}

void MessageBar::refresh() {
  leave_->stop();
  setVisible(!queue_.empty());
  emit count_changed(count());
  if (queue_.empty()) return place();
  const Message& message = queue_.front();
  const ThemeColors& colors = theme_colors(palette());
  const bool note = message.kind == Message::Kind::note;
  const QColor tint = note ? colors.accent : message.kind == Message::Kind::warning ? colors.warning : colors.error;
  QPixmap mark(QSize(16, 16) * devicePixelRatioF());
  mark.setDevicePixelRatio(devicePixelRatioF());
  mark.fill(Qt::transparent);
  QPainter painter(&mark);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(tint, 1.4));
  if (note)
    painter.drawEllipse(QRectF(1.5, 1.5, 13, 13));
  else
    painter.drawPolygon(QPolygonF({{8, 1.8}, {15, 14.2}, {1, 14.2}}));
  painter.drawLine(QPointF(8, 6), QPointF(8, 10));
  painter.drawPoint(QPointF(8, 12.2));
  painter.end();
  icon_->setPixmap(mark);
  icon_->setAccessibleName(note ? tr("Note") : message.kind == Message::Kind::warning ? tr("Warning") : tr("Error"));
  const auto [head, rest] = head_and_rest(message.what);
  what_->setText(head);
  const QString below = rest.isEmpty() || message.where.isEmpty() ? rest + message.where : rest + u'\n' + message.where;
  where_->setText(below);
  where_->setVisible(!below.isEmpty());
  position_->setText(queue_.size() > 1 ? tr("1 of %1").arg(queue_.size()) : QString());
  act_->setText(message.action);
  act_->setVisible(!message.action.isEmpty());
  setAccessibleDescription(message.what + u' ' + message.where);
  if (note) leave_->start();
  place();
  update();
}

void MessageBar::hang_below(QWidget* above, QWidget* area) {
  above_ = above;
  area_ = area;
  setParent(area);
  for (QWidget* watched : {above, area}) watched->installEventFilter(this);
  setVisible(!queue_.empty());
  place();
}

void MessageBar::place() {
  if (!area_ || queue_.empty()) {
    emit covers(0);
    return;
  }
  const int top = above_->isVisibleTo(area_) ? above_->mapTo(area_, QPoint(0, above_->height())).y() : 0;
  const int wide = area_->width();
  // The layout's own hint does not know how often words wrap at this width.
  const int high =
      layout()->hasHeightForWidth() ? layout()->totalHeightForWidth(wide) : layout()->totalSizeHint().height();
  setGeometry(0, top, wide, std::min(high, area_->height() - top));
  raise();
  emit covers(height());
}

bool MessageBar::eventFilter(QObject* watched, QEvent* event) {
  switch (event->type()) {
    case QEvent::Resize:
    case QEvent::Move:
    case QEvent::Show:
    case QEvent::Hide: place(); break;
    default: break;
  }
  return QFrame::eventFilter(watched, event);
}

void MessageBar::copy() {
  if (const Message* message = current())
    QApplication::clipboard()->setText(message->where.isEmpty() ? message->what
                                                                : message->what + u'\n' + message->where);
}

void MessageBar::paintEvent(QPaintEvent*) {
  if (queue_.empty()) return;
  const ThemeColors& colors = theme_colors(palette());
  const auto kind = queue_.front().kind;
  QPainter painter(this);
  painter.fillRect(rect(), kind == Message::Kind::note      ? colors.accent_background
                           : kind == Message::Kind::warning ? colors.warning_background
                                                            : colors.error_background);
  painter.setPen(colors.border);
  painter.drawLine(0, height() - 1, width(), height() - 1);
}

void MessageBar::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && !queue_.empty()) update();
}

}  // namespace turnpoint::views
