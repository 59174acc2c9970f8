// SPDX-License-Identifier: Apache-2.0
#include "app/workspace.h"

namespace turnpoint::app {

Workspace::Workspace(const SearchBackend& with)
    : tasks_(std::make_unique<TaskManager>()),
      backend(with),
      tasks(*tasks_),
      document(backend, tasks),
      runner(backend, tasks, document),
      judge(runner, tasks),
      clock(runner, tasks),
      keeper(runner, judge, clock, document.selection()),
      loader(runner, tasks, document.selection()),
      schedules(loader, tasks, document.selection()),
      explainer(tasks),
      validations(tasks),
      pinned_searches(backend, tasks, document, runner) {}

void Workspace::end_tasks() {
  QObject::disconnect(&tasks, nullptr, nullptr, nullptr);
  tasks_.reset();
}

bool Workspace::settled() const {
  return runner.up_to_date() && runner.settled() && loader.up_to_date() && schedules.up_to_date() && clock.settled() &&
         judge.settled() && pinned_searches.settled() && tasks.tasks().size() == (runner.getting_ready() ? 1 : 0) &&
         !document.building();
}

const MethodRun* Workspace::picked_run() const {
  const auto& picked = document.selection().point();
  const MethodRun* run = picked && document.scenario() ? runner.find(picked->method) : nullptr;
  return run && run->enabled && run->result && picked->index < run->result->points.size() ? run : nullptr;
}

bool Workspace::plan_is_of_model() const {
  const ResultPtr& result = loader.result();
  const ScenarioPtr& open = document.scenario();
  return !loader.picked_plan() || (result && open && result->scenario->model == open->model);
}

}  // namespace turnpoint::app
