// SPDX-License-Identifier: Apache-2.0
#include "core/import/source/model_source.h"
#include "core/import/task_graph.h"

namespace turnpoint {

namespace {

class TaskGraphSource : public ModelSource {
 public:
  TaskGraphSource(TaskGraphPtr tasks, const std::string& path) : tasks_(std::move(tasks)) {
    auto model = std::make_shared<Model>();
    // Files seldom name their graph; the file's own name then says what is open.
    const bool named = !tasks_->name.empty() && tasks_->name != path;
    model->name = named ? tasks_->name : path.substr(path.find_last_of('/') + 1);
    model->source = path;
    model_ = std::move(model);
  }
  std::string name() const override { return model_->name; }
  std::string source() const override { return model_->source; }
  Expected<ModelPtr> bind(const ModelBinding&) const override { return model_; }
  TaskGraphPtr tasks() const override { return tasks_; }

 private:
  TaskGraphPtr tasks_;
  ModelPtr model_;
};

}  // namespace

Expected<ModelSourcePtr> open_task_graph_source(const std::string& path) {
  auto tasks = open_task_graph(path);
  if (!tasks) return tasks.error();
  return ModelSourcePtr(std::make_shared<TaskGraphSource>(std::move(*tasks), path));
}

}  // namespace turnpoint
