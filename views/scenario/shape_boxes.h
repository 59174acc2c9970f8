// SPDX-License-Identifier: Apache-2.0
// How many devices: nodes x devices of a node. Of a preset both are free, thousands too, and another shape is other
// hardware; of measured or described hardware there are whole nodes like its own, or a part of one.
#pragma once

#include <QWidget>

class QLabel;
class QSpinBox;

namespace turnpoint::views {

struct ScenarioView;

class ShapeBoxes : public QWidget {
  Q_OBJECT
 public:
  explicit ShapeBoxes(QWidget* parent = nullptr);

  void show_shape(const ScenarioView& view);
  QSpinBox* nodes() const { return nodes_; }
  QSpinBox* devices() const { return devices_; }  ///< of a node

 signals:
  void hardware_edited(const QString& specification);  ///< the preset of that shape
  void devices_edited(int devices);                    ///< in all; of the hardware that is open

 private:
  enum class Kind { nothing, preset, profile, mixed, file };
  void edited();

  QSpinBox *nodes_, *devices_;
  QLabel *times_, *total_;
  Kind kind_ = Kind::nothing;
  QString specification_;
  int whole_node_ = 0;  ///< devices of a node before cutting
};

}  // namespace turnpoint::views
