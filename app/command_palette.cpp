// SPDX-License-Identifier: Apache-2.0
#include "app/command_palette.h"

#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/theme_colors.h"

namespace turnpoint::app {

namespace {
constexpr std::size_t kMostShown = 60;
constexpr int kNothingHeight_px = 64;  ///< three lines of the sentence that nothing was found
constexpr int kNoteRole = Qt::UserRole + 1;

/// The name on the left, its shortcut or kind in a column at the right.
class PaletteDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QString note = index.data(kNoteRole).toString();
    QStyleOptionViewItem name = option;
    initStyleOption(&name, index);
    constexpr int kGap = 12;
    const int wide = std::min(option.fontMetrics.horizontalAdvance(note), option.rect.width() / 2);
    const int room = option.rect.width() - (note.isEmpty() ? 0 : wide + 2 * kGap);
    name.text = option.fontMetrics.elidedText(name.text, Qt::ElideMiddle, room - kGap);
    name.widget->style()->drawControl(QStyle::CE_ItemViewItem, &name, painter, name.widget);
    if (note.isEmpty()) return;
    const bool picked = option.state & QStyle::State_Selected;
    painter->setPen(picked ? option.palette.color(QPalette::HighlightedText)
                           : views::theme_colors(option.palette).secondary);
    painter->drawText(option.rect.adjusted(room, 0, -kGap / 2, 0), Qt::AlignRight | Qt::AlignVCenter,
                      option.fontMetrics.elidedText(note, Qt::ElideRight, wide));
  }
};

}  // namespace

std::vector<std::size_t> find_entries(const std::vector<PaletteEntry>& entries, const QString& query,
                                      std::size_t limit) {
  const QStringList words = query.split(u' ', Qt::SkipEmptyParts);
  std::vector<std::pair<int, std::size_t>> hits;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    int rank = 0;
    bool all = true;
    for (const QString& word : words) {
      const auto at = entries[i].text.indexOf(word, 0, Qt::CaseInsensitive);
      if (at < 0) {
        all = false;
        break;
      }
      if (at > 0) rank += entries[i].text[at - 1].isLetterOrNumber() ? 2 : 1;
    }
    if (all) hits.emplace_back(rank, i);
  }
  std::stable_sort(hits.begin(), hits.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (hits.size() > limit) hits.resize(limit);
  std::vector<std::size_t> indices;
  for (const auto& hit : hits) indices.push_back(hit.second);
  return indices;
}

CommandPalette::CommandPalette(QWidget* parent) : QFrame(parent) {
  setObjectName(QStringLiteral("command_palette"));
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  field_ = new QLineEdit(this);
  field_->setPlaceholderText(tr("Find action, setting, method, model or operator"));
  field_->setAccessibleName(tr("Find action, setting, method, model or operator"));
  field_->setClearButtonEnabled(true);
  list_ = new QListWidget(this);
  list_->setAccessibleName(tr("Found"));
  list_->setUniformItemSizes(true);
  list_->setItemDelegate(new PaletteDelegate(list_));
  nothing_ = new QLabel(this);
  nothing_->setAlignment(Qt::AlignCenter);
  nothing_->setWordWrap(true);
  nothing_->setTextFormat(Qt::PlainText);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->addWidget(field_);
  column->addWidget(list_, 1);
  column->addWidget(nothing_, 1);
  field_->installEventFilter(this);
  connect(field_, &QLineEdit::textChanged, this, &CommandPalette::refresh);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run_current);
  hide();
}

void CommandPalette::open(std::vector<PaletteEntry> entries) {
  entries_ = std::move(entries);
  const QWidget* over = parentWidget();
  const int wide = std::min(560, over->width() - 40);
  most_height_ = std::min(420, over->height() - 80);
  setGeometry((over->width() - wide) / 2, 64, wide, most_height_);
  field_->clear();
  refresh();
  show();
  raise();
  field_->setFocus(Qt::PopupFocusReason);
}

void CommandPalette::refresh() {
  list_->clear();
  for (const std::size_t index : find_entries(entries_, field_->text(), kMostShown)) {
    const PaletteEntry& entry = entries_[index];
    auto* item = new QListWidgetItem(entry.text, list_);
    item->setData(kNoteRole, entry.note);
    item->setData(Qt::AccessibleTextRole, entry.note.isEmpty() ? entry.text : entry.text + u' ' + entry.note);
    item->setData(Qt::UserRole, static_cast<int>(index));
  }
  list_->setCurrentRow(0);
  const bool found = list_->count() > 0;
  list_->setVisible(found);
  nothing_->setVisible(!found);
  if (!found)
    nothing_->setText(tr("Nothing is called \u201c%1\u201d: no action, setting, method, model or operator.")
                          .arg(field_->text().simplified().left(60)));
  fit_height();
}

/// As high as what was found: one line in a tall empty box looks as if more were to come.
void CommandPalette::fit_height() {
  const int rows = list_->count();
  const int shown = rows > 0 ? rows * list_->sizeHintForRow(0) + 2 * list_->frameWidth() : kNothingHeight_px;
  const QMargins around = layout()->contentsMargins();
  const int wanted = around.top() + field_->sizeHint().height() + layout()->spacing() + shown + around.bottom();
  resize(width(), std::min(most_height_, wanted + 2 * frameWidth()));
}

void CommandPalette::run_current() {
  const QListWidgetItem* item = list_->currentItem();
  if (!item) return;
  const auto run = entries_[static_cast<std::size_t>(item->data(Qt::UserRole).toInt())].run;
  hide();
  parentWidget()->setFocus();
  if (run) run();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched != field_) return QFrame::eventFilter(watched, event);
  if (event->type() == QEvent::FocusOut && !list_->underMouse()) hide();
  if (event->type() != QEvent::KeyPress) return false;
  const auto* key = static_cast<QKeyEvent*>(event);
  const auto move = [&](int steps) {
    list_->setCurrentRow(std::clamp(list_->currentRow() + steps, 0, std::max(0, list_->count() - 1)));
    return true;
  };
  switch (key->key()) {
    case Qt::Key_Down: return move(1);
    case Qt::Key_Up: return move(-1);
    case Qt::Key_PageDown: return move(10);
    case Qt::Key_PageUp: return move(-10);
    case Qt::Key_Return:
    case Qt::Key_Enter: run_current(); return true;
    case Qt::Key_Escape:
      hide();
      parentWidget()->setFocus();
      return true;
    default: return false;
  }
}

}  // namespace turnpoint::app
