// SPDX-License-Identifier: Apache-2.0
// What a window works on, without the window: what is open, what is searched, picked, loaded and run.
#pragma once

#include "app/document.h"
#include "app/explainer.h"
#include "app/fit_judge.h"
#include "app/pick_keeper.h"
#include "app/pinned_searches.h"
#include "app/plan_loader.h"
#include "app/schedule_loader.h"
#include "app/search_backend.h"
#include "app/search_runner.h"
#include "app/simulated_clock.h"
#include "app/task_manager.h"
#include "app/validation_runner.h"

namespace turnpoint::app {

struct Workspace {
  explicit Workspace(const SearchBackend& backend);
  /// Workers first: what they post must find nobody half destroyed. Nothing may be started afterwards.
  void end_tasks();

  /// The first frontier is there, exact, with its plan in all views, and nothing is running.
  bool settled() const;
  /// The one with the picked point; null: none is picked.
  const MethodRun* picked_run() const;
  /// What the loader has, nothing included, may stand beside the open model.
  bool plan_is_of_model() const;

 private:
  std::unique_ptr<TaskManager> tasks_;

 public:
  const SearchBackend& backend;
  TaskManager& tasks;
  Document document;
  SearchRunner runner;
  FitJudge judge;
  SimulatedClock clock;
  PickKeeper keeper;
  PlanLoader loader;
  ScheduleLoader schedules;
  Explainer explainer;
  ValidationRunner validations;
  PinnedSearches pinned_searches;
};

}  // namespace turnpoint::app
