// SPDX-License-Identifier: Apache-2.0
#include "app/dock_title.h"

#include <QDockWidget>
#include <QHBoxLayout>
#include <QToolButton>

#include "views/common/icons.h"

namespace turnpoint::app {

DockTitle::DockTitle(QWidget* tool_bar, QDockWidget* dock) : QWidget(dock) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 4, 0);
  row->setSpacing(0);
  row->addWidget(tool_bar, 1);
  const auto button = [&](const char* icon, const QString& tip) {
    auto* made = new QToolButton(this);
    made->setIcon(views::themed_icon(QString::fromLatin1(icon)));
    made->setAutoRaise(true);
    made->setToolTip(tip);
    made->setAccessibleName(tip);
    row->addWidget(made);
    return made;
  };
  connect(button("float", tr("Float %1").arg(dock->windowTitle())), &QToolButton::clicked, dock, [dock] { dock->setFloating(!dock->isFloating()); });
  connect(button("close", tr("Close %1").arg(dock->windowTitle())), &QToolButton::clicked, dock, &QDockWidget::close);
}

}  // namespace turnpoint::app
