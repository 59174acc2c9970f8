// SPDX-License-Identifier: Apache-2.0
#include "app/dock_title.h"

#include <QDockWidget>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>

#include "views/common/icons.h"

namespace turnpoint::app {

DockTitle::DockTitle(QWidget* tool_bar, QDockWidget* dock) : QWidget(dock), tool_bar_(tool_bar) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 4, 0);
  row->setSpacing(0);
  row->addWidget(tool_bar, 1);
  // Words of the tool bar give way before the dock holds a narrow window open.
  for (QLabel* words : tool_bar->findChildren<QLabel*>())
    if (!words->buddy()) words->setMinimumWidth(1);
  // Of a bar inside a bar only the inner one has heard of it yet.
  for (QWidget* part : tool_bar->findChildren<QWidget*>(Qt::FindDirectChildrenOnly)) part->updateGeometry();
  const auto button = [&](const char* icon, const QString& tip) {
    auto* made = new QToolButton(this);
    made->setIcon(views::themed_icon(QString::fromLatin1(icon)));
    made->setAutoRaise(true);
    made->setToolTip(tip);
    made->setAccessibleName(tip);
    row->addWidget(made);
    return made;
  };
  connect(button("float", tr("Float %1").arg(dock->windowTitle())), &QToolButton::clicked, dock,
          [dock] { dock->setFloating(!dock->isFloating()); });
  connect(button("close", tr("Close %1").arg(dock->windowTitle())), &QToolButton::clicked, dock, &QDockWidget::close);
}

QSize DockTitle::minimumSizeHint() const {
  return QWidget::minimumSizeHint().boundedTo({kLeastWidth, QWIDGETSIZE_MAX});
}

void DockTitle::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  // A word is shown whole or not at all.
  QList<QLabel*> words;
  for (QLabel* label : tool_bar_->findChildren<QLabel*>())
    if (!label->buddy() && !label->text().isEmpty()) words << label;
  for (QLabel* label : words) label->show();
  for (QLabel* label : words) {
    if (tool_bar_->layout()) tool_bar_->layout()->invalidate();
    if (tool_bar_->sizeHint().width() <= tool_bar_->width()) return;
    label->hide();
  }
}

}  // namespace turnpoint::app
