// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/fsdp.h"

#include <fmt/format.h>
#include <set>

#include "core/base/text.h"
#include "core/search/baselines/notes.h"
#include "core/search/baselines/pipeline.h"
#include "core/search/baselines/restricted.h"

namespace turnpoint::search {

namespace {

class FullySharded : public Searcher {
 public:
  FullySharded(int stage, bool in_node, bool selective, std::string parameters)
      : stage_(stage), in_node_(in_node), selective_(selective), parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const Mesh mesh = make_mesh(*scenario->cluster);
    std::uint32_t axes = 0;
    for (int a = 0; a < mesh.count(); ++a)
      if (!in_node_ || mesh.axes[static_cast<std::size_t>(a)].level == kIntraNode) axes |= 1u << a;
    SearchSpace space;
    space.only = [](OperatorId, const Operator& op, const Mesh& on) {
      return std::vector<Configuration>{data_parallel_configuration(op, on)};
    };
    space.choice = zero_choice(stage_, axes);
    const auto result =
        selective_ ? selective_point(scenario, context) : fastest_with("fsdp", scenario, space, context);
    if (!result || parameters_.empty()) return result;
    auto named = std::make_shared<Result>(**result);
    named->method = "fsdp";
    named->method_options = parameters_;
    return ResultPtr(std::move(named));
  }

 private:
  // The same plan, but for the cores of attentions, which run again.
  Expected<ResultPtr> selective_point(const ScenarioPtr& scenario, const RunContext& context) const {
    const auto roles = find_transformer_roles(*scenario->model, scenario->settings.split_windows);
    if (!roles) return roles.error();
    ManualSplit split;
    split.data = scenario->cluster->devices(), split.zero = stage_, split.shards_in_node = in_node_;
    split.recompute = split.selective = true;
    return pipeline_point(scenario, &*roles, split, context);
  }

  int stage_;
  bool in_node_, selective_;
  std::string parameters_;
};

}  // namespace

MemoryChoice zero_choice(int stage, std::uint32_t axes) {
  MemoryChoice choice;
  if (stage <= 0 || axes == 0) return choice;
  choice.update = stage == 1 ? Update::sharded_state : stage == 2 ? Update::sharded : Update::sharded_weights;
  choice.update_axes = axes;
  return choice;
}

Expected<std::unique_ptr<Searcher>> make_fsdp(std::string_view parameters) {
  int stage = 3;
  bool in_node = false, selective = false;
  if (!parameters.empty()) {
    std::set<std::string_view> given;
    for (const auto word : split(parameters, ':')) {
      if (const auto key = word.substr(0, word.find('=')); !key.empty() && !given.insert(key).second)
        return usage_error(fmt::format("method fsdp has the parameter '{}' twice", key));
      if (word == "zero=1" || word == "zero=2" || word == "zero=3")
        stage = word.back() - '0';
      else if (word == "group=node" || word == "group=all")
        in_node = word == "group=node";
      else if (word == "recompute=selective")
        selective = true;
      else
        return usage_error(fmt::format(
            "method fsdp knows the parameters zero=1|2|3, group=node|all and recompute=selective, not '{}'", word));
    }
  }
  return with_batch_note(std::make_unique<FullySharded>(stage, in_node, selective, std::string(parameters)));
}

}  // namespace turnpoint::search
