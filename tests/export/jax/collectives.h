// SPDX-License-Identifier: Apache-2.0
// Collectives of a plan beside those of a program that JAX has compiled.
#pragma once

#include <fmt/format.h>

#include <QJsonArray>
#include <QJsonObject>
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/cost/resharding.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint::test {

/// Groups of devices that differ along these axes only, the first axis of the mesh outermost.
inline std::vector<std::vector<int>> groups_along(const Mesh& mesh, std::uint32_t axes) {
  std::map<std::vector<int>, std::vector<int>> groups;
  for (int device = 0; device < mesh.devices(); ++device) {
    std::vector<int> others;
    int rest = device;
    for (int a = mesh.count() - 1; a >= 0; --a) {
      const int size = mesh.axes[static_cast<std::size_t>(a)].size;
      others.push_back(axes >> a & 1u ? -1 : rest % size);
      rest /= size;
    }
    groups[others].push_back(device);
  }
  std::vector<std::vector<int>> found;
  for (const auto& [key, devices] : groups) found.push_back(devices);
  std::sort(found.begin(), found.end());
  return found;
}

struct Listed {
  std::string kind;
  std::vector<std::vector<int>> groups;
  double bytes = 0;
  double slack = 0;  ///< bytes of what fills up pieces
  bool operator<(const Listed& other) const {
    return std::tie(kind, groups, bytes) < std::tie(other.kind, other.groups, other.bytes);
  }
};

/// What the plan says that devices exchange in a step.
inline std::vector<Listed> planned(const Scenario& scenario, const Plan& plan) {
  std::vector<Listed> all;
  const auto add = [&](const ReshardStep& step, double slack) {
    if (step.move == ReshardMove::slice) return;
    std::string kind = to_string(step.move);
    std::replace(kind.begin(), kind.end(), '_', '-');
    const bool sends = step.move == ReshardMove::permute;
    all.push_back(
        {kind, sends ? std::vector<std::vector<int>>() : groups_along(plan.mesh, step.axes), step.bytes, slack});
  };
  for (const PlanOperator& op : plan.operators)
    for (const ParameterSteps& steps : op.parameters) {
      std::int64_t elements = 0;
      for (const auto k : steps.group.inputs) {
        const Access& access = scenario.model->operators[op.op].inputs[k];
        elements += local_elements(
            plan.mesh, forward_layout(scenario.model->operators[op.op], access, false, op.split, plan.mesh.count()),
            scenario.model->tensors[access.tensor].shape);
      }
      const std::int64_t pieces = plan.mesh.size_of(steps.group.shards(op.choice));
      const double slack = elements % pieces ? 8.0 * static_cast<double>(pieces) : 0;
      // Gathered for backward beside what it reads, and read by nobody where the operator does not run again.
      const Operator& described = scenario.model->operators[op.op];
      const auto saved = [&](std::uint32_t k) { return described.inputs[k].saved; };
      bool others = false;
      for (const Access& access : described.inputs)
        others = others || (access.saved && scenario.model->tensors[access.tensor].role == TensorRole::parameter);
      const bool idle =
          others && !op.choice.recompute && std::none_of(steps.group.inputs.begin(), steps.group.inputs.end(), saved);
      for (std::size_t read = 0; read < steps.gather.size(); ++read)
        if (read == 0 || !idle) add(steps.gather[read], slack);
      for (const auto* list : {&steps.sync, &steps.spread})
        for (const ReshardStep& step : *list) add(step, slack);
    }
  for (const PlanReshard& reshard : plan.reshards)
    for (const ReshardRole role : kReshardRoles)
      for (const ReshardStep& step : reshard.steps(role)) add(step, 0);
  std::sort(all.begin(), all.end());
  return all;
}

inline std::vector<Listed> carried_out(const QJsonArray& collectives) {
  std::vector<Listed> all;
  for (const auto& value : collectives) {
    const QJsonObject one = value.toObject();
    Listed listed{one["kind"].toString().toStdString(), {}, one["bytes"].toDouble(), 0};
    if (listed.kind != "permute")
      for (const auto& group : one["groups"].toArray()) {
        listed.groups.emplace_back();
        for (const auto& device : group.toArray()) listed.groups.back().push_back(device.toInt());
      }
    all.push_back(std::move(listed));
  }
  std::sort(all.begin(), all.end());
  return all;
}

inline std::string words_of(const Listed& listed) {
  return fmt::format("{} of {} bytes among {}", listed.kind, listed.bytes,
                     listed.groups.empty() ? 0 : listed.groups.front().size());
}

/// Bytes of the data that a step is fed with, on one device.
inline std::int64_t data_bytes(const Scenario& scenario, const Plan& plan) {
  std::int64_t bytes = 0;
  for (const PlanOperator& planned : plan.operators) {
    const Operator& op = scenario.model->operators[planned.op];
    if (op.kind != OperatorKind::input) continue;
    for (const Access& access : op.outputs) {
      const Tensor& tensor = scenario.model->tensors[access.tensor];
      bytes +=
          size_of(tensor.type) *
          local_elements(plan.mesh, forward_layout(op, access, true, planned.split, plan.mesh.count()), tensor.shape);
    }
  }
  return bytes;
}

}  // namespace turnpoint::test
