// SPDX-License-Identifier: Apache-2.0
// Keeps the picked point while results change under it: the turning point stays the turning point, any other pick stays
// at its memory.
#pragma once

#include <QObject>
#include <optional>

#include "views/common/selection_model.h"

namespace turnpoint::app {

class SearchRunner;

class PickKeeper : public QObject {
  Q_OBJECT
 public:
  PickKeeper(SearchRunner& runner, views::SelectionModel& selection, QObject* parent = nullptr);
  bool follows_turning_point() const { return follows_; }
  /// From a session: the point nearest to this memory once results are there.
  void want(const std::string& method, double memory_bytes);

 private:
  void result_changed(const QString& method);
  void point_changed();

  SearchRunner& runner_;
  views::SelectionModel& selection_;
  bool follows_ = true, own_ = false;
  std::string method_;
  double memory_ = 0;
};

}  // namespace turnpoint::app
