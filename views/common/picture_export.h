// SPDX-License-Identifier: Apache-2.0
// How a view offers its picture as a file: it has the signal export_requested(suffix), and the app asks for the file.
#pragma once

#include <QMenu>
#include <QToolButton>

#include "views/common/icons.h"

namespace turnpoint::views {

template <class View>
void add_picture_actions(QMenu* menu, View* view) {
  menu->addAction(QObject::tr("Picture as PNG\u2026"), view,
                  [view] { emit view->export_requested(QStringLiteral("png")); });
  menu->addAction(QObject::tr("Picture as SVG\u2026"), view,
                  [view] { emit view->export_requested(QStringLiteral("svg")); });
}

/// A button of a tool bar that is an icon.
inline QToolButton* icon_button(QWidget* bar, const QString& icon, const QString& name, const QString& tip) {
  auto* button = new QToolButton(bar);
  button->setIcon(themed_icon(icon));
  button->setAutoRaise(true);
  button->setToolTip(tip);
  button->setAccessibleName(name);
  return button;
}

template <class View>
QToolButton* make_export_button(QWidget* bar, View* view) {
  QToolButton* button =
      icon_button(bar, QStringLiteral("export"), QObject::tr("Export"), QObject::tr("Export this picture"));
  button->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(button);
  add_picture_actions(menu, view);
  button->setMenu(menu);
  return button;
}

}  // namespace turnpoint::views
