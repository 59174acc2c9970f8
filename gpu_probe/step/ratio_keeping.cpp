// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/ratio_keeping.h"

#include <algorithm>

namespace turnpoint::step {

namespace {

bool arrives(const RatioMove& move, const std::vector<std::uint32_t>& path, std::uint32_t rank) {
  if (move.empty()) return false;
  return std::any_of(path.begin(), path.end(), [&](std::uint32_t node) {
    return std::any_of(move.at[node].begin(), move.at[node].end(),
                       [&](const RatioMessage& message) { return message.to == rank; });
  });
}

}  // namespace

// Of what runs again the inputs are kept. A tensor is lost where its producer runs again and its reader has it as the
// producer left it. A view of what is lost runs again as well: here it has bytes of its own.
RatioKeeping::RatioKeeping(const RatioProgram& program, std::uint32_t rank)
    : again(program.operators.size(), 0), kept(again.size()), lost(again.size()) {
  const Model& model = *program.model;
  const auto& listed = program.plan.again;
  if (rank < listed.size())
    for (const OperatorId id : listed[rank]) again[id.index] = 1;
  const std::uint32_t leaf = program.tree.leaf_of[rank];
  const std::vector<std::uint32_t> path = program.tree.path_to(rank);
  const auto as_left = [&](const RatioFlow& flow, const Model::Use& use) {
    const RatioLie& made = program.operators[flow.producer.index].outputs[flow.output];
    const auto partial = [&](std::uint32_t node) { return made.held[node] == Layout::kPartial; };
    if (std::any_of(path.begin(), path.end(), partial)) return false;
    for (const RatioReaders& group : flow.readers) {
      if (std::none_of(group.uses.begin(), group.uses.end(),
                       [&](const Model::Use& one) { return one.op == use.op && one.input == use.input; }))
        continue;
      return group.lie.part[leaf] == made.part[leaf] && !arrives(group.way.move, path, rank);
    }
    return false;
  };
  const auto flow_to = [&](const Access& access) -> const RatioFlow* {
    const OperatorId producer = model.tensors[access.tensor].producer;
    if (!producer.valid()) return nullptr;
    const auto& outputs = model.operators[producer].outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (const std::int32_t f = program.operators[producer.index].output_flow[o];
          outputs[o].tensor == access.tensor && f >= 0)
        return &program.flows[static_cast<std::size_t>(f)];
    return nullptr;
  };
  for (std::size_t o = 0; o < again.size(); ++o) {
    const Operator& op = model.operators[OperatorId(o)];
    kept[o].assign(op.inputs.size(), 0), lost[o].assign(op.inputs.size(), 0);
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
      const RatioFlow* const flow = flow_to(op.inputs[k]);
      if (!flow) continue;
      const bool is_lost = again[flow->producer.index] && as_left(*flow, {OperatorId(o), k});
      if (is_lost && op.is_view()) again[o] = 1;
      const bool wanted = op.inputs[k].saved || again[o];
      lost[o][k] = wanted && is_lost, kept[o][k] = wanted && !is_lost;
    }
  }
}

}  // namespace turnpoint::step
