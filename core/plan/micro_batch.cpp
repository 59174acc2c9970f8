// SPDX-License-Identifier: Apache-2.0
#include "core/plan/micro_batch.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/cost/logical_dims.h"

namespace turnpoint {

namespace {

class Cutter {
 public:
  Cutter(const Model& model, std::int64_t parts)
      : whole_(model), model_(model), parts_(parts), dims_(analyse_logical_dims(model, false)) {
    carries_.assign(dims_.classes.size(), 0);
  }

  Expected<ModelPtr> run() {
    if (whole_.batch % parts_ != 0) return cannot(fmt::format("a batch of {}", whole_.batch));
    for (std::size_t c = 0; c < dims_.classes.size(); ++c)
      for (const auto& member : dims_.classes[c].members)
        carries_[c] |= whole_.operators[member.op].dims[static_cast<std::size_t>(member.loop)].name == DimName::batch;
    std::vector<std::vector<char>> cut(model_.tensors.size());
    for (std::size_t t = 0; t < cut.size(); ++t) cut[t].assign(model_.tensors[TensorId(t)].shape.size(), 0);
    for (std::size_t i = 0; i < model_.operators.size(); ++i)
      if (auto done = cut_operator(OperatorId(i), cut); !done) return done.error();
    for (std::size_t t = 0; t < cut.size(); ++t)
      for (std::size_t d = 0; d < cut[t].size(); ++d) {
        auto& size = model_.tensors[TensorId(t)].shape[d];
        if (!cut[t][d]) continue;
        if (size % parts_ != 0) return cannot(fmt::format("tensor '{}'", model_.tensors[TensorId(t)].name));
        size /= parts_;
      }
    if (auto checked = check(); !checked) return checked.error();
    for (Operator& op : model_.operators) {
      if (!op.parts) continue;
      auto cut_parts = Cutter(*op.parts, parts_).run();
      if (!cut_parts) return cut_parts.error();
      op.parts = std::move(*cut_parts);
    }
    model_.batch /= parts_;
    return ModelPtr(std::make_shared<const Model>(std::move(model_)));
  }

 private:
  Error cannot(const std::string& what) const {
    return usage_error(fmt::format("{} cannot be cut into {} micro-batches", what, parts_));
  }

  bool carries(OperatorId id, std::size_t loop) const {
    const int c = dims_.at(id, static_cast<int>(loop));
    return c >= 0 ? carries_[static_cast<std::size_t>(c)] != 0 : whole_.operators[id].dims[loop].name == DimName::batch;
  }

  Expected<void> cut_operator(OperatorId id, std::vector<std::vector<char>>& cut) {
    Operator& op = model_.operators[id];
    bool any = false;
    std::vector<char> short_loop(op.dims.size(), 0);
    for (std::size_t l = 0; l < op.dims.size(); ++l) {
      if (!carries(id, l) || op.dims[l].size == 1) continue;
      if (op.dims[l].size % parts_ != 0) return cannot(fmt::format("operator '{}'", op.name));
      op.dims[l].size /= parts_;
      short_loop[l] = any = true;
    }
    if (!any) return {};
    const auto mark = [&](const Access& access) {
      for (std::size_t d = 0; d < access.walks.size(); ++d)
        for (const auto loop : access.walks[d])
          if (short_loop[loop]) cut[access.tensor.index][d] = 1;
    };
    std::for_each(op.inputs.begin(), op.inputs.end(), mark);
    std::for_each(op.outputs.begin(), op.outputs.end(), mark);
    for (double* work : {&op.forward_flop, &op.backward_flop, &op.forward_macs, &op.backward_macs})
      *work /= static_cast<double>(parts_);
    return {};
  }

  // Every dimension that was walked completely still is.
  Expected<void> check() const {
    const auto walked = [](const Operator& op, const std::vector<std::uint8_t>& walk) {
      std::int64_t size = 1;
      for (const auto loop : walk) size *= op.dims[loop].size;
      return size;
    };
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      const Operator &before = whole_.operators[OperatorId(i)], &after = model_.operators[OperatorId(i)];
      const auto fits = [&](const Access& access) {
        const auto &was = whole_.tensors[access.tensor].shape, &is = model_.tensors[access.tensor].shape;
        for (std::size_t d = 0; d < access.walks.size(); ++d)
          if (!access.walks[d].empty() && walked(before, access.walks[d]) == was[d] &&
              walked(after, access.walks[d]) != is[d])
            return false;
        return true;
      };
      if (!std::all_of(after.inputs.begin(), after.inputs.end(), fits) ||
          !std::all_of(after.outputs.begin(), after.outputs.end(), fits))
        return cannot(fmt::format("operator '{}'", after.name));
    }
    return {};
  }

  const Model& whole_;
  Model model_;
  std::int64_t parts_;
  LogicalDims dims_;
  std::vector<char> carries_;
};

}  // namespace

Expected<ModelPtr> micro_batch_model(const ModelPtr& model, std::int64_t parts) {
  if (parts == 1) return model;
  return Cutter(*model, parts).run();
}

}  // namespace turnpoint
