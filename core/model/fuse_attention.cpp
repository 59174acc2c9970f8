// SPDX-License-Identifier: Apache-2.0
#include "core/model/fuse_attention.h"

#include <algorithm>
#include <optional>

#include "core/model/remove_from.h"

namespace turnpoint {

namespace {

using Walks = std::vector<std::vector<std::uint8_t>>;
constexpr std::size_t kMostLoops = 64;

/// From the scores to the product with the values, in order; the input of each at which it reads the one before.
struct Chain {
  std::vector<OperatorId> operators;
  std::vector<std::uint32_t> reads_at;  ///< of the first: unused
  std::size_t softmax = 0;
};

bool is_product_of_activations(const Model& model, const Operator& op) {
  if (op.kind != OperatorKind::matmul || op.inputs.size() < 2 || op.outputs.size() != 1) return false;
  return std::all_of(op.inputs.begin(), op.inputs.begin() + 2, [&](const Access& access) {
    const Tensor& tensor = model.tensors[access.tensor];
    return tensor.role == TensorRole::activation && tensor.requires_gradient;
  });
}

class Finder {
 public:
  explicit Finder(const Model& model) : model_(model), is_result_(model.tensors.size(), false) {
    for (const TensorId id : model.results) is_result_[id.index] = true;
  }

  std::optional<Chain> around(OperatorId softmax) const {
    Chain chain;
    const auto& shape = model_.tensors[model_.operators[softmax].outputs.front().tensor].shape;
    // Backwards to the scores.
    OperatorId at = softmax;
    for (;;) {
      const auto read = gradient_input(at);
      if (!read) return std::nullopt;
      chain.operators.insert(chain.operators.begin(), at);
      chain.reads_at.insert(chain.reads_at.begin(), *read);
      const TensorId from = model_.operators[at].inputs[*read].tensor;
      if (!stays_inside(from, shape)) return std::nullopt;
      at = model_.tensors[from].producer;
      if (is_product_of_activations(model_, model_.operators[at])) break;
      if (model_.operators[at].kind != OperatorKind::elementwise) return std::nullopt;
    }
    if (adds_trained_table(model_.operators[at])) return std::nullopt;
    chain.operators.insert(chain.operators.begin(), at);
    chain.reads_at.insert(chain.reads_at.begin(), 0);
    chain.softmax = chain.operators.size() - 1;
    // And on to the product with the values.
    for (at = softmax;;) {
      const TensorId made = model_.operators[at].outputs.front().tensor;
      if (!stays_inside(made, shape)) return std::nullopt;
      const Model::Use use = model_.uses[made].front();
      const Operator& next = model_.operators[use.op];
      chain.operators.push_back(use.op);
      chain.reads_at.push_back(use.input);
      if (is_product_of_activations(model_, next) && use.input < 2 && next.inputs.size() == 2) return chain;
      if (next.kind != OperatorKind::elementwise || gradient_input(use.op) != use.input) return std::nullopt;
      at = use.op;
    }
  }

 private:
  /// The one input with a gradient.
  std::optional<std::uint32_t> gradient_input(OperatorId id) const {
    std::optional<std::uint32_t> found;
    const Operator& op = model_.operators[id];
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!model_.tensors[op.inputs[k].tensor].requires_gradient) continue;
      if (found) return std::nullopt;
      found = static_cast<std::uint32_t>(k);
    }
    return found;
  }
  /// Trained numbers that are added to the scores by position (T5); one of each head (sinks) a kernel knows.
  bool adds_trained_table(const Operator& scores) const {
    return std::any_of(scores.inputs.begin() + 2, scores.inputs.end(), [&](const Access& access) {
      const Tensor& tensor = model_.tensors[access.tensor];
      if (tensor.role != TensorRole::parameter) return false;
      for (std::size_t d = 0; d < tensor.shape.size(); ++d)
        if (tensor.shape[d] > 1 && access.walks[d].empty()) return true;
      return false;
    });
  }
  bool stays_inside(TensorId id, const std::vector<std::int64_t>& shape) const {
    const Tensor& tensor = model_.tensors[id];
    return tensor.role == TensorRole::activation && tensor.producer.valid() && tensor.shape == shape &&
           !is_result_[id.index] && model_.uses[id].size() == 1;
  }

  const Model& model_;
  std::vector<bool> is_result_;
};

/// Makes one operator of a chain.
class Fusion {
 public:
  Fusion(const Model& model, const Chain& chain) : model_(model), chain_(chain) {}

  /// False where the loops of the parts do not meet.
  bool make() {
    const Operator &scores = part(0), &context = part(chain_.operators.size() - 1);
    fused_.name = context.name;
    fused_.scope = context.scope;
    fused_.kind = OperatorKind::attention;
    fused_.detail = "Attention";
    fused_.causal = part(chain_.softmax).causal;
    fused_.dims = scores.dims;
    loops_.push_back({});
    for (std::size_t l = 0; l < scores.dims.size(); ++l) loops_.front().push_back(static_cast<std::uint8_t>(l));
    for (std::size_t p = 1; p < chain_.operators.size(); ++p)
      if (!follow(p)) return false;
    set_roles(scores, context);
    for (std::size_t p = 0; p < chain_.operators.size(); ++p) add_inputs(p);
    const Access& made = context.outputs.front();
    fused_.outputs.push_back({made.tensor, translated(made.walks, loops_.back()), true});
    count_work(scores, context);
    copy_parts();
    fused_.part_loops = loops_;
    return true;
  }

  Operator& result() { return fused_; }
  /// Two numbers a row of the scores, its largest and the sum of its exponentials.
  Tensor statistics() const {
    Tensor tensor;
    tensor.name = fused_.name + "/statistics";
    tensor.role = TensorRole::internal;
    for (const std::uint8_t loop : rows_) {
      tensor.shape.push_back(fused_.dims[loop].size);
      tensor.dims.push_back(fused_.dims[loop].name);
    }
    tensor.shape.push_back(2);
    tensor.dims.push_back(DimName::other);
    return tensor;
  }
  Access statistics_access(TensorId id) const {
    Access access{id, {}, true};
    for (const std::uint8_t loop : rows_) access.walks.push_back({loop});
    access.walks.emplace_back();
    return access;
  }

 private:
  const Operator& part(std::size_t p) const { return model_.operators[chain_.operators[p]]; }

  static Walks translated(const Walks& walks, const std::vector<std::uint8_t>& loops) {
    Walks result(walks.size());
    for (std::size_t d = 0; d < walks.size(); ++d)
      for (const std::uint8_t loop : walks[d]) result[d].push_back(loops[loop]);
    return result;
  }

  // The loops of a part are those of the part before it where both walk the tensor between them.
  bool follow(std::size_t p) {
    constexpr std::uint8_t kUnknown = 255;
    const Operator& op = part(p);
    const Walks before = translated(part(p - 1).outputs.front().walks, loops_.back());
    const Walks& here = op.inputs[chain_.reads_at[p]].walks;
    std::vector<std::uint8_t> loops(op.dims.size(), kUnknown);
    // Some operators walk a dimension of size 1, others do not.
    const auto longer = [](const std::vector<std::uint8_t>& walk, const std::vector<LoopDimension>& dims) {
      std::vector<std::uint8_t> list;
      for (const std::uint8_t loop : walk)
        if (dims[loop].size > 1) list.push_back(loop);
      return list;
    };
    for (std::size_t d = 0; d < here.size(); ++d) {
      const auto from = longer(before[d], fused_.dims), to = longer(here[d], op.dims);
      if (from.size() != to.size()) return false;
      for (std::size_t k = 0; k < to.size(); ++k) {
        if (fused_.dims[from[k]].size != op.dims[to[k]].size) return false;
        loops[to[k]] = from[k];
      }
    }
    const bool last = p + 1 == chain_.operators.size();
    for (std::size_t l = 0; l < loops.size(); ++l) {
      if (loops[l] != kUnknown) continue;
      if ((!last && op.dims[l].size > 1) || fused_.dims.size() >= kMostLoops) return false;
      loops[l] = static_cast<std::uint8_t>(fused_.dims.size());
      fused_.dims.push_back(op.dims[l]);
      fused_.dims.back().splittable = false;
    }
    loops_.push_back(std::move(loops));
    return true;
  }

  void set_roles(const Operator& scores, const Operator& context) {
    std::vector<bool> in_scores(fused_.dims.size(), false);
    for (std::size_t l = 0; l < scores.dims.size(); ++l)
      if (scores.dims[l].role == DimRole::reduction) fused_.dims[l].splittable = false;
    for (const auto& walk : scores.outputs.front().walks)
      for (const std::uint8_t loop : walk) in_scores[loop] = true;
    for (std::size_t l = 0; l < context.dims.size(); ++l) {
      const std::uint8_t loop = loops_.back()[l];
      if (context.dims[l].role != DimRole::reduction || !in_scores[loop]) continue;
      fused_.dims[loop].role = DimRole::reduction;
      fused_.dims[loop].splittable = false;
      in_scores[loop] = false;
    }
    for (std::size_t p = 0; p < chain_.operators.size(); ++p)
      for (std::size_t l = 0; l < part(p).dims.size(); ++l)
        if (!part(p).dims[l].splittable) fused_.dims[loops_[p][l]].splittable = false;
    for (std::size_t l = 0; l < in_scores.size(); ++l)
      if (in_scores[l]) rows_.push_back(static_cast<std::uint8_t>(l));
  }

  // Backward makes everything again, so that it reads all of them.
  void add_inputs(std::size_t p) {
    const Operator& op = part(p);
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      if (p == 0 || k != chain_.reads_at[p])
        fused_.inputs.push_back({op.inputs[k].tensor, translated(op.inputs[k].walks, loops_[p]), true});
  }

  void count_work(const Operator& scores, const Operator& context) {
    const double share = fused_.causal ? 0.5 : 1;
    fused_.forward_macs = share * (scores.forward_macs + context.forward_macs);
    fused_.backward_macs = share * (scores.backward_macs + context.backward_macs + scores.forward_macs);
    fused_.forward_flop = share * (scores.forward_flop + context.forward_flop);
    fused_.backward_flop = share * (scores.backward_flop + context.backward_flop + scores.forward_flop);
    for (std::size_t p = 1; p + 1 < chain_.operators.size(); ++p) {
      fused_.forward_flop += share * part(p).forward_flop;
      fused_.backward_flop += share * (part(p).backward_flop + part(p).forward_flop);
    }
  }

  // Its inputs first, then what the parts make.
  void copy_parts() {
    auto parts = std::make_shared<Model>();
    parts->name = fused_.name;
    parts->batch = model_.batch;
    parts->sequence = model_.sequence;
    for (const Access& access : fused_.inputs) {
      parts->tensors.push_back(model_.tensors[access.tensor]);
      parts->tensors.back().producer = {};
      parts->tensors.back().tied_to = {};
    }
    std::uint32_t input = 0;
    for (std::size_t p = 0; p < chain_.operators.size(); ++p) {
      Operator op = part(p);
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const bool before = p > 0 && k == chain_.reads_at[p];
        op.inputs[k].tensor = before ? parts->operators.back().outputs.front().tensor : TensorId(input++);
      }
      for (Access& access : op.outputs) {
        Tensor tensor = model_.tensors[access.tensor];
        tensor.producer = parts->operators.next_id();
        access.tensor = parts->tensors.next_id();
        parts->tensors.push_back(std::move(tensor));
      }
      parts->operators.push_back(std::move(op));
    }
    parts->results = {parts->operators.back().outputs.front().tensor};
    parts->fill_uses();
    fused_.parts = std::move(parts);
  }

  const Model& model_;
  const Chain& chain_;
  Operator fused_;
  std::vector<std::vector<std::uint8_t>> loops_;
  std::vector<std::uint8_t> rows_;  ///< loops of the scores but for the keys'
};

}  // namespace

ModelPtr fuse_attention(const ModelPtr& model) {
  const Finder finder(*model);
  std::shared_ptr<Model> made;
  std::vector<bool> gone, gone_tensor;
  for (std::size_t i = 0; i < model->operators.size(); ++i) {
    if (model->operators[OperatorId(i)].kind != OperatorKind::softmax) continue;
    const auto chain = finder.around(OperatorId(i));
    if (!chain) continue;
    Fusion fusion(*model, *chain);
    if (!fusion.make()) continue;
    if (!made) {
      made = std::make_shared<Model>(*model);
      gone.assign(model->operators.size(), false);
      gone_tensor.assign(model->tensors.size(), false);
    }
    const OperatorId last = chain->operators.back();
    for (const OperatorId id : chain->operators) {
      if (id == last) break;
      gone[id.index] = true;
      for (const Access& access : model->operators[id].outputs) gone_tensor[access.tensor.index] = true;
    }
    Operator& op = fusion.result();
    const TensorId statistics = made->tensors.next_id();
    op.outputs.push_back(fusion.statistics_access(statistics));
    made->tensors.push_back(fusion.statistics());
    made->tensors.back().producer = last;
    gone_tensor.push_back(false);
    made->operators[last] = std::move(op);
  }
  if (!made) return model;
  remove_from(*made, gone, gone_tensor, made->results);
  made->fill_uses();
  return made;
}

}  // namespace turnpoint
