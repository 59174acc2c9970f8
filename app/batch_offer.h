// SPDX-License-Identifier: Apache-2.0
// Where the frontier is known and none of its plans fits, a smaller batch with which one does is looked for in the
// background and offered.
#pragma once

#include <QObject>

#include "core/scenario/scenario.h"

namespace turnpoint::app {

class Document;
class FitJudge;
class SearchRunner;
class TaskManager;

class BatchOffer : public QObject {
  Q_OBJECT
 public:
  BatchOffer(Document& document, SearchRunner& runner, FitJudge& judge, TaskManager& tasks, QObject* parent = nullptr);

 signals:
  /// `batch` 0: not even one sample fits.
  void found(qint64 batch);
  /// What was offered is about another scenario than the one that is open now.
  void withdrawn();

 private:
  void look();
  void withdraw();
  void search();

  Document& document_;
  SearchRunner& runner_;
  FitJudge& judge_;
  TaskManager& tasks_;
  ScenarioPtr looked_;  ///< the scenario that a batch was looked for
  bool offered_ = false;
};

}  // namespace turnpoint::app
