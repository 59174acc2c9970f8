// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/shape_boxes.h"

#include <QHBoxLayout>
#include <QSignalBlocker>

#include "core/hardware/naming.h"
#include "core/scenario/task_scenario.h"
#include "views/common/calm.h"
#include "views/common/format.h"
#include "views/common/note_label.h"
#include "views/common/typed_undo.h"
#include "views/scenario/scenario_panel.h"

namespace turnpoint::views {

namespace {

QSpinBox* count_box(const char* object, const QString& name, int most, QWidget* parent) {
  auto* box = new Calm<QSpinBox>(parent);
  box->setObjectName(QString::fromLatin1(object));
  box->setAccessibleName(name);
  box->setRange(1, most);
  box->setKeyboardTracking(false);
  box->setMinimumWidth(56);
  box->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  box->setFocusPolicy(Qt::StrongFocus);
  leave_spent_undo(box);
  return box;
}

}  // namespace

ShapeBoxes::ShapeBoxes(QWidget* parent) : QWidget(parent) {
  auto* line = new QHBoxLayout(this);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(6);
  nodes_ = count_box("nodes", tr("Nodes"), kMaximumNodes, this);
  devices_ = count_box("devices", tr("Devices of a node"), kMaximumDevices, this);
  total_ = new NoteLabel(this);
  total_->setObjectName(QStringLiteral("devices_total"));
  line->addWidget(nodes_, 1);
  times_ = new NoteLabel(QStringLiteral("\u00d7"), this);
  line->addWidget(times_);
  line->addWidget(devices_, 1);
  line->addWidget(total_, 1);
  setMinimumHeight(nodes_->sizeHint().height());  // the same with words alone
  setFocusProxy(nodes_);
  connect(nodes_, &QSpinBox::valueChanged, this, &ShapeBoxes::edited);
  connect(devices_, &QSpinBox::valueChanged, this, &ShapeBoxes::edited);
}

void ShapeBoxes::show_shape(const ScenarioView& view) {
  const QSignalBlocker quiet_nodes(nodes_), quiet_devices(devices_);
  specification_ = view.hardware_specification;
  kind_ = Kind::nothing;
  const Cluster* used = view.scenario ? view.scenario->cluster.get() : nullptr;
  if (used && view.scenario->hardware == kFileHardware)
    kind_ = Kind::file;
  else if (used && used->mixed())
    kind_ = Kind::mixed;
  else if (used)
    // Pods are those of the hardware as it was named, however many of its nodes are taken.
    kind_ = (!view.cluster || view.cluster->pods.empty()) && preset_of_shape(specification_.toStdString(), 1, 1)
                ? Kind::preset
                : Kind::profile;
  whole_node_ = view.cluster ? view.cluster->devices_per_node : used ? used->devices_per_node : 1;
  nodes_->setValue(used ? used->nodes : 1);
  devices_->setRange(1, kind_ == Kind::preset    ? kMaximumDevicesPerNode
                        : kind_ == Kind::profile ? whole_node_
                                                 : kMaximumDevices);
  devices_->setValue(used ? used->devices_per_node : 1);
  nodes_->setEnabled(kind_ == Kind::preset || kind_ == Kind::profile);
  devices_->setEnabled(kind_ == Kind::preset || kind_ == Kind::file ||
                       (kind_ == Kind::profile && used->nodes == 1 && whole_node_ > 1));
  const QString of_mixed = tr("Nodes of this hardware differ: it is taken as a whole");
  nodes_->setToolTip(kind_ == Kind::mixed  ? of_mixed
                     : kind_ == Kind::file ? tr("The file describes devices without nodes")
                                           : tr("Nodes; more than the hardware has are added beside its own"));
  devices_->setToolTip(
      kind_ == Kind::mixed ? of_mixed
      : kind_ == Kind::profile && !devices_->isEnabled() && used->nodes > 1
          ? tr("Several nodes are whole ones, of %1 devices as this hardware was described").arg(whole_node_)
          : tr("Devices of a node"));
  // Of unlike nodes no two numbers tell the shape.
  for (QWidget* part : {static_cast<QWidget*>(nodes_), static_cast<QWidget*>(times_), static_cast<QWidget*>(devices_)})
    part->setVisible(kind_ != Kind::mixed);
  QStringList kinds;
  if (kind_ == Kind::mixed)
    for (const NodeGroup& group : used->groups)
      kinds << QStringLiteral("%1 \u00d7 %2").arg(group.nodes).arg(group.devices_per_node);
  total_->setText(used ? QString(kinds.join(QStringLiteral(" + ")) + tr(" = %1").arg(used->devices())).trimmed()
                       : QString());
  total_->setToolTip(kind_ == Kind::mixed ? of_mixed : QString());
}

void ShapeBoxes::edited() {
  const int nodes = nodes_->value(), devices = devices_->value();
  if (kind_ == Kind::preset) {
    const auto other = preset_of_shape(specification_.toStdString(), nodes, devices);
    if (other) emit hardware_edited(to_qt(*other));
  } else if (kind_ == Kind::profile) {
    emit devices_edited(nodes > 1 ? nodes * whole_node_ : devices);
  } else if (kind_ == Kind::file) {
    emit devices_edited(devices);
  }
}

}  // namespace turnpoint::views
