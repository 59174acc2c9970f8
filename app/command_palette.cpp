// SPDX-License-Identifier: Apache-2.0
#include "app/command_palette.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <algorithm>

namespace turnpoint::app {

namespace {
constexpr std::size_t kMostShown = 60;
}

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
  field_->setPlaceholderText(tr("Find operator or action"));
  field_->setAccessibleName(tr("Find operator or action"));
  field_->setClearButtonEnabled(true);
  list_ = new QListWidget(this);
  list_->setAccessibleName(tr("Found"));
  list_->setUniformItemSizes(true);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->addWidget(field_);
  column->addWidget(list_);
  field_->installEventFilter(this);
  connect(field_, &QLineEdit::textChanged, this, &CommandPalette::refresh);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run_current);
  hide();
}

void CommandPalette::open(std::vector<PaletteEntry> entries) {
  entries_ = std::move(entries);
  const QWidget* over = parentWidget();
  const int wide = std::min(560, over->width() - 40), high = std::min(420, over->height() - 80);
  setGeometry((over->width() - wide) / 2, 64, wide, high);
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
    auto* item =
        new QListWidgetItem(entry.note.isEmpty() ? entry.text : entry.text + QStringLiteral("   ") + entry.note, list_);
    item->setData(Qt::UserRole, static_cast<int>(index));
  }
  list_->setCurrentRow(0);
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
