// SPDX-License-Identifier: Apache-2.0
// The few pages of help that are boxes: what the chart shows, keys, about.
#pragma once

#include <QString>
#include <QStringList>

class QWidget;

namespace turnpoint::app {

void show_help(QWidget* window);
void show_about(QWidget* window);
/// Commands, views, and what keys do inside a view. `views`: titles of those that Ctrl+1 ... Ctrl+9 show, in this
/// order.
void show_shortcuts(QWidget* window, const QStringList& views);
QString shortcut_page(const QStringList& views);  ///< as rich text, in two columns

}  // namespace turnpoint::app
