// SPDX-License-Identifier: Apache-2.0
// The page of keys: commands, views, and what keys do inside a view.
#pragma once

#include <QString>
#include <QStringList>

namespace turnpoint::app {

/// As rich text, in two columns. `views`: titles of those that Ctrl+1 ... Ctrl+9 show, in this order.
QString shortcut_page(const QStringList& views);

}  // namespace turnpoint::app
