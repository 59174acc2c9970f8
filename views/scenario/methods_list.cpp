// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/methods_list.h"

#include <QApplication>
#include <QContextMenuEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QWheelEvent>

#include "views/common/check_outline.h"
#include "views/common/method_marks.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/scenario/methods_model.h"

namespace turnpoint::views {

namespace {

constexpr int kRow = 22, kSwatch = 22, kGap = 6, kMark = 14;

class MethodDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const int line = std::max(kRow, option.fontMetrics.height() + 6);
    const auto* list = qobject_cast<const QAbstractItemView*>(option.widget);
    const int width = list ? list->viewport()->width() : option.rect.width();
    const QString reason = reason_below(index);
    if (reason.isEmpty()) return {width, line};
    return {width, line + reason_lines(option, width - indent(option), reason) + 2};
  }

  /// Why a split or variant of the user's own is refused: its own row says so, whole.
  static QString reason_below(const QModelIndex& index) {
    const bool refused = index.data(MethodsModel::kStateRole).toInt() == static_cast<int>(MethodRow::State::refused);
    const bool own = index.data(MethodsModel::kNameRole).toString().contains(u':');
    return refused && own ? index.data(MethodsModel::kStatusRole).toString() : QString();
  }
  static int indent(const QStyleOptionViewItem& option) { return check_rect(option).width() + 1 + kGap; }
  static int reason_lines(const QStyleOptionViewItem& option, int width, const QString& reason) {
    const QFontMetrics metrics(secondary_font(option.font));
    return metrics.boundingRect(QRect(0, 0, std::max(60, width), 10000), Qt::TextWordWrap, reason).height();
  }

  void paint(QPainter* painter, const QStyleOptionViewItem& whole, const QModelIndex& index) const override {
    const ThemeColors& colors = theme_colors(whole.palette);
    const QString reason = reason_below(index);
    QStyleOptionViewItem option = whole;
    option.rect.setHeight(std::max(kRow, whole.fontMetrics.height() + 6));
    const auto state = static_cast<MethodRow::State>(index.data(MethodsModel::kStateRole).toInt());
    const bool on = index.data(Qt::CheckStateRole).toInt() == Qt::Checked;
    const bool running = state == MethodRow::State::running || state == MethodRow::State::coarse;
    painter->save();
    if (option.state & QStyle::State_Selected) painter->fillRect(whole.rect, colors.accent_background);

    QStyleOptionButton box;
    box.initFrom(option.widget);
    box.rect = check_rect(option);
    box.state = (on ? QStyle::State_On : QStyle::State_Off);
    if (state != MethodRow::State::refused) box.state |= QStyle::State_Enabled;
    QApplication::style()->drawPrimitive(QStyle::PE_IndicatorCheckBox, &box, painter, option.widget);
    outline_indicator(*painter, box.rect, colors);

    int x = box.rect.right() + 1 + kGap;
    const QColor tint =
        on ? colors.method(index.data(MethodsModel::kNameRole).toString().toStdString()) : colors.disabled;
    const QRect swatch(x, option.rect.top(), kSwatch, option.rect.height());
    if (on)
      draw_method_swatch(*painter, swatch, index.data(MethodsModel::kNameRole).toString(),
                         index.data(MethodsModel::kFrontierRole).toBool(), tint);
    x += kSwatch + kGap;

    int right = option.rect.right() - 2;
    const QRect mark(right - kMark + 1, option.rect.center().y() - kMark / 2 + 1, kMark, kMark);
    draw_mark(*painter, mark, state, index.data(MethodsModel::kFractionRole).toDouble(), colors, running);
    right -= kMark + 4;
    if (on && !index.data(MethodsModel::kNotesRole).toString().isEmpty()) {
      draw_note_sign(*painter, QPointF(right - kMark / 2, option.rect.center().y() + 1), colors);
      right -= kMark + 4;
    }

    const QString title = index.data(Qt::DisplayRole).toString();
    const QFont small = secondary_font(option.font);
    const QFontMetrics small_metrics(small);
    const int title_width = std::min(option.fontMetrics.horizontalAdvance(title) + 4, right - x);
    painter->setFont(option.font);
    painter->setPen(on ? colors.text : colors.disabled);
    painter->drawText(QRect(x, option.rect.top(), title_width, option.rect.height()), Qt::AlignVCenter,
                      option.fontMetrics.elidedText(title, Qt::ElideRight, title_width));
    const int status_left = x + title_width + kGap;
    if (!reason.isEmpty()) {
      painter->setFont(small);
      painter->setPen(colors.error);
      painter->drawText(whole.rect.adjusted(indent(option), option.rect.height(), 0, 0), Qt::TextWordWrap, reason);
    } else if (right > status_left) {
      painter->setFont(small);
      painter->setPen(state == MethodRow::State::failed ? colors.error : on ? colors.secondary : colors.disabled);
      const QString status = small_metrics.elidedText(index.data(MethodsModel::kStatusRole).toString(), Qt::ElideRight,
                                                      right - status_left);
      painter->drawText(QRect(status_left, option.rect.top(), right - status_left, option.rect.height()),
                        Qt::AlignVCenter | Qt::AlignRight, status);
    }
    painter->restore();
  }

  // The list itself acts on the mouse; a second answer to the release would take its own back.
  bool editorEvent(QEvent* event, QAbstractItemModel* model, const QStyleOptionViewItem& option,
                   const QModelIndex& index) override {
    return dynamic_cast<QMouseEvent*>(event) == nullptr &&
           QStyledItemDelegate::editorEvent(event, model, option, index);
  }

  static QRect check_rect(const QStyleOptionViewItem& option) {
    const int size = QApplication::style()->pixelMetric(QStyle::PM_IndicatorWidth, nullptr, option.widget);
    return {option.rect.left() + 1, option.rect.center().y() - size / 2 + 1, size, size};
  }

 private:
  /// "There is more to say": the words are in the tool tip and in the Plan dock.
  static void draw_note_sign(QPainter& painter, const QPointF& c, const ThemeColors& colors) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colors.warning, 1.4));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolygon(QPolygonF({c + QPointF(0, -5.5), c + QPointF(6, 5), c + QPointF(-6, 5)}));
    painter.drawLine(c + QPointF(0, -1.5), c + QPointF(0, 1));
    painter.drawPoint(c + QPointF(0, 3));
  }

  static void draw_mark(QPainter& painter, const QRect& area, MethodRow::State state, double fraction,
                        const ThemeColors& colors, bool running) {
    painter.setRenderHint(QPainter::Antialiasing);
    const QPointF c = QRectF(area).center();
    if (running) {
      // A pie fills with progress behind a small cross that cancels.
      painter.setPen(Qt::NoPen);
      painter.setBrush(colors.border);
      painter.drawEllipse(c, 6.5, 6.5);
      if (fraction > 0) {
        painter.setBrush(colors.accent);
        painter.drawPie(QRectF(c.x() - 6.5, c.y() - 6.5, 13, 13), 90 * 16, static_cast<int>(-fraction * 360 * 16));
      }
      painter.setPen(QPen(colors.text, 1.4));
      painter.drawLine(c - QPointF(2.6, 2.6), c + QPointF(2.6, 2.6));
      painter.drawLine(c - QPointF(2.6, -2.6), c + QPointF(2.6, -2.6));
    } else if (state == MethodRow::State::done) {
      painter.setPen(QPen(colors.ok, 1.6));
      painter.drawPolyline(QPolygonF({c + QPointF(-4, 0.5), c + QPointF(-1, 3.5), c + QPointF(4.5, -3.5)}));
    } else if (state == MethodRow::State::failed) {
      painter.setPen(QPen(colors.error, 1.6));
      painter.drawLine(c - QPointF(0, 4), c + QPointF(0, 1));
      painter.drawPoint(c + QPointF(0, 4));
    }
  }
};

}  // namespace

MethodsList::MethodsList(QWidget* parent) : QListView(parent) {
  setObjectName(QStringLiteral("methods_list"));
  setAccessibleName(tr("Methods"));
  setFrameShape(QFrame::NoFrame);
  setItemDelegate(new MethodDelegate(this));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setEditTriggers(NoEditTriggers);
  setResizeMode(Adjust);
  viewport()->setAutoFillBackground(false);
  connect(this, &QListView::clicked, this,
          [this](const QModelIndex& index) { emit method_clicked(index.data(MethodsModel::kNameRole).toString()); });
}

void MethodsList::setModel(QAbstractItemModel* new_model) {
  QListView::setModel(new_model);
  connect(new_model, &QAbstractItemModel::modelReset, this, &MethodsList::fold_again);
  connect(new_model, &QAbstractItemModel::dataChanged, this, [this] {
    show_used();
    scheduleDelayedItemsLayout();
    updateGeometry();
  });
}

// Whoever switched it on: what is on is seen.
void MethodsList::show_used() {
  for (int row = 0; row < model()->rowCount(); ++row)
    if (isRowHidden(row) && !is_unused(row)) setRowHidden(row, false);
}

bool MethodsList::is_unused(int row) const {
  const QModelIndex index = model()->index(row, 0);
  return index.data(Qt::CheckStateRole).toInt() != Qt::Checked &&
         !index.data(MethodsModel::kNameRole).toString().contains(u':');
}

void MethodsList::set_folded(bool folded) {
  folded_ = folded;
  fold_again();
}

void MethodsList::fold_again() {
  if (!model()) return;
  int unused = 0;
  const int rows = model()->rowCount();
  for (int row = 0; row < rows; ++row) unused += is_unused(row);
  // Of a list in which nothing is on there would be nothing left to switch on.
  const bool fold = folded_ && unused < rows;
  for (int row = 0; row < rows; ++row) setRowHidden(row, fold && is_unused(row));
  updateGeometry();
  emit unused_changed(unused < rows ? unused : 0);
}

QSize MethodsList::sizeHint() const {
  int height = 2;
  for (int row = 0; model() && row < model()->rowCount(); ++row)
    if (!isRowHidden(row)) height += sizeHintForRow(row);
  return {200, height};
}

void MethodsList::resizeEvent(QResizeEvent* event) {
  QListView::resizeEvent(event);
  if (event->oldSize().width() != event->size().width()) updateGeometry();  // reasons wrap otherwise
}

QSize MethodsList::minimumSizeHint() const { return {120, sizeHint().height()}; }

QRect MethodsList::cancel_rect(const QModelIndex& index) const {
  const QRect row = visualRect(index);
  return {row.right() - kMark - 4, row.top(), kMark + 6, row.height()};
}

void MethodsList::mousePressEvent(QMouseEvent* event) {
  const QModelIndex index = indexAt(event->pos());
  if (index.isValid() && event->button() == Qt::LeftButton) {
    const auto state = static_cast<MethodRow::State>(index.data(MethodsModel::kStateRole).toInt());
    const bool running = state == MethodRow::State::running || state == MethodRow::State::coarse;
    if (running && cancel_rect(index).contains(event->pos())) {
      emit cancel_requested(index.data(MethodsModel::kNameRole).toString());
      return;
    }
    QStyleOptionViewItem option;
    initViewItemOption(&option);
    option.rect = visualRect(index);
    option.rect.setHeight(std::max(kRow, fontMetrics().height() + 6));
    if (state != MethodRow::State::refused &&
        MethodDelegate::check_rect(option).adjusted(-2, -3, 3, 3).contains(event->pos())) {
      model()->setData(index, index.data(Qt::CheckStateRole).toInt() == Qt::Checked ? Qt::Unchecked : Qt::Checked,
                       Qt::CheckStateRole);
      return;
    }
  }
  QListView::mousePressEvent(event);
}

namespace {

QString parameters_of(const QString& method) { return method.section(u':', 1); }

}  // namespace

void MethodsList::contextMenuEvent(QContextMenuEvent* event) {
  const QModelIndex index = event->reason() == QContextMenuEvent::Keyboard ? currentIndex() : indexAt(event->pos());
  const QString method = index.data(MethodsModel::kNameRole).toString();
  const bool own = !parameters_of(method).isEmpty(), settable = index.data(MethodsModel::kSettingsRole).toBool();
  if (!own && !settable) return;
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  if (settable)
    menu->addAction(own ? tr("Change\u2026") : tr("Settings\u2026"), this,
                    [this, method] { emit settings_requested(method); });
  const auto* rows = qobject_cast<const MethodsModel*>(model());
  if (!own && settable && rows && !rows->row(index).variants.empty()) {
    QMenu* variants = menu->addMenu(tr("Add a variant"));
    variants->setObjectName(QStringLiteral("variants_menu"));
    for (const auto& [words, parameters] : rows->row(index).variants)
      variants->addAction(words, this, [this, name = method + u':' + parameters] { emit variant_requested(name); });
  }
  if (own) menu->addAction(tr("Remove"), this, [this, method] { emit remove_requested(method); });
  menu->popup(event->reason() == QContextMenuEvent::Keyboard ? mapToGlobal(visualRect(index).center())
                                                             : event->globalPos());
}

void MethodsList::mouseDoubleClickEvent(QMouseEvent* event) {
  const QModelIndex index = indexAt(event->pos());
  if (index.data(MethodsModel::kSettingsRole).toBool() && event->button() == Qt::LeftButton)
    emit settings_requested(index.data(MethodsModel::kNameRole).toString());
  else
    QListView::mouseDoubleClickEvent(event);
}

void MethodsList::keyPressEvent(QKeyEvent* event) {
  const QString method = currentIndex().data(MethodsModel::kNameRole).toString();
  if (event->key() == Qt::Key_Delete && !parameters_of(method).isEmpty()) {
    emit remove_requested(method);
    return;
  }
  const bool enters = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter || event->key() == Qt::Key_F2;
  if (enters && currentIndex().data(MethodsModel::kSettingsRole).toBool()) {
    emit settings_requested(method);
    return;
  }
  QListView::keyPressEvent(event);
}

// The list has no scroll bar of its own; the dock around it scrolls.
void MethodsList::wheelEvent(QWheelEvent* event) { event->ignore(); }

}  // namespace turnpoint::views
