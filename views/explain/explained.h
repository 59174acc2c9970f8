// SPDX-License-Identifier: Apache-2.0
// One answer about a plan, as the window shows and copies it.
#pragma once

#include <QString>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/plan_difference.h"

namespace turnpoint::views {

struct Explained {
  std::vector<std::string> sentences;                ///< an indented one belongs to the one before
  std::shared_ptr<const PlanDifference> difference;  ///< null: the answer is about one plan
  ModelPtr model;                                    ///< of the difference
  QString price;           ///< "3.5 % (12 ms) slower", beside the question; empty: it asks for none
  QString command;         ///< lines for a terminal that give the same answer
  QString why_no_command;  ///< where there are none
  double seconds = 0;      ///< that it took
  bool refused = false;    ///< the sentences say why there is no answer

  /// Sentences and tables, as the command line prints them.
  QString text() const;
};
using ExplainedPtr = std::shared_ptr<const Explained>;

}  // namespace turnpoint::views
