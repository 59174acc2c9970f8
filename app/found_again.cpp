// SPDX-License-Identifier: Apache-2.0
#include "app/found_again.h"

#include <QObject>

#include "core/search/registry.h"

namespace turnpoint::app {

QString why_not_found_again(const Result& result, bool sketch) {
  if (result.scenario->model->source.empty())
    return QObject::tr("The model was read from no file that a terminal could search.");
  if (sketch)
    return QObject::tr(
        "The curve is a sketch still: a terminal knows this point by its number once the search has ended.");
  if (ends_by_time(result.method, result.method_options))
    return QObject::tr("The search ended by time: a terminal that searches again may find other points.");
  return {};
}

}  // namespace turnpoint::app
