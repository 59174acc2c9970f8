// SPDX-License-Identifier: Apache-2.0
// Long names of siblings, shortened so that they can still be told apart: where "block_3_of_the_stack" and
// "block_4_of_the_stack" have no room, it is the numbers that stay.
#pragma once

#include <QFontMetricsF>
#include <QString>
#include <vector>

namespace turnpoint::views {

/// Characters [begin, end) of a name.
struct NamePart {
  qsizetype begin = 0, end = 0;
};

/// Of each name the part in which it differs from the one that is most like it; empty where another is equal to it or
/// there is no other.
std::vector<NamePart> telling_parts(const std::vector<QString>& names);

/// The name where there is room for it, else with dots in the middle; where these would swallow `part`, the part with
/// as much of its surroundings as there is room for.
QString elided_around(const QFontMetricsF& metrics, const QString& name, NamePart part, double width);

}  // namespace turnpoint::views
