// SPDX-License-Identifier: Apache-2.0
#include "app/kept_work.h"

#include <QObject>

namespace turnpoint::app {

QStringList changed_work(const KeptWork& before, const KeptWork& now) {
  QStringList changed;
  if (now.model != before.model) changed << QObject::tr("the model");
  if (now.hardware != before.hardware) changed << QObject::tr("the hardware");
  if (now.settings != before.settings) changed << QObject::tr("settings");
  if (now.methods != before.methods || now.splits != before.splits) changed << QObject::tr("methods");
  if (now.frontiers != before.frontiers) changed << QObject::tr("pinned frontiers");
  if (now.reports != before.reports) changed << QObject::tr("validation reports");
  if (now.study != before.study) changed << QObject::tr("answers of the study");
  if (now.sweep != before.sweep) changed << QObject::tr("the sweep");
  if (now.title != before.title || now.notes != before.notes) changed << QObject::tr("notes");
  return changed;
}

}  // namespace turnpoint::app
