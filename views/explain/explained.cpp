// SPDX-License-Identifier: Apache-2.0
#include "views/explain/explained.h"

#include "core/search/explain/told_answer.h"
#include "views/common/format.h"

namespace turnpoint::views {

QString Explained::text() const {
  QStringList lines;
  for (const std::string& line : sentences) lines << to_qt(line);
  if (difference)
    for (const std::string& line : describe(*difference)) lines << to_qt(line);
  return lines.join(u'\n') + u'\n';
}

}  // namespace turnpoint::views
