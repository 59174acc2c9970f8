// SPDX-License-Identifier: Apache-2.0
// Fused attention (core/model/fuse_attention.h) as the operators that it stands for, one after the other. What they
// make lasts for one call only: backward makes it again from queries, keys and values.
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

namespace {

class Parts {
 public:
  Parts(const LocalOperator& at, Inputs in)
      : at_(at), model_(*at.op().parts), made_(model_.tensors.size()), seen_(model_.tensors.size()) {
    for (std::size_t k = 0; k < in.size(); ++k) seen_[k] = in[k];
  }

  /// The result goes to `last`; null: nobody wants it.
  Expected<void> forward(Block* last) {
    const std::size_t count = model_.operators.size() - (last ? 0 : 1);
    for (std::size_t p = 0; p < count; ++p) {
      const LocalOperator part = local(p);
      const auto kernel = arithmetic().kernel_of(model_, part.id);
      if (!kernel) return kernel.error();
      std::vector<const Block*> in;
      std::vector<Block*> out;
      for (const Access& access : part.op().inputs) in.push_back(seen_[access.tensor.index]);
      for (const Access& access : part.op().outputs) {
        Block* block = last && access.tensor == model_.results.front() ? last : make(part, access);
        seen_[access.tensor.index] = block;
        out.push_back(block);
      }
      const Kernel& run = *kernel;
      if (run.fast_forward && run.fast_forward(part, in, out)) continue;
      if (!arithmetic().on_device)
        for (Block* block : out) block->data.clear();
      if (auto done = run.forward(part, in, out); !done) return done;
    }
    return {};
  }

  Expected<void> backward(const Block* gradient, Outputs result) {
    std::vector<std::unique_ptr<Block>> gradients(model_.tensors.size());
    for (std::size_t p = model_.operators.size(); p-- > 0;) {
      const LocalOperator part = local(p);
      const auto kernel = arithmetic().kernel_of(model_, part.id);
      if (!kernel) return kernel.error();
      std::vector<const Block*> in, out, of_outputs;
      std::vector<Block*> of_inputs;
      for (const Access& access : part.op().inputs) {
        const std::size_t t = access.tensor.index;
        in.push_back(seen_[t]);
        if (t < result.size()) {
          of_inputs.push_back(result[t]);
        } else {
          gradients[t] = block_of(part, access);
          of_inputs.push_back(gradients[t].get());
        }
      }
      for (const Access& access : part.op().outputs) {
        const std::size_t t = access.tensor.index;
        out.push_back(seen_[t]);
        of_outputs.push_back(access.tensor == model_.results.front() ? gradient : gradients[t].get());
      }
      const Kernel& run = *kernel;
      if (run.fast_backward && run.fast_backward(part, in, out, of_outputs, of_inputs)) continue;
      for (Block* block : of_inputs)
        if (block && !arithmetic().on_device) block->data.clear();
      if (auto done = run.backward(part, in, out, of_outputs, of_inputs); !done) return done;
    }
    return {};
  }

 private:
  LocalOperator local(std::size_t p) const {
    LocalOperator part;
    part.model = &model_;
    part.id = OperatorId(p);
    for (const std::uint8_t loop : at_.op().part_loops[p]) part.loops.push_back(at_.loops[loop]);
    part.adds_once = at_.adds_once;
    part.seed = at_.seed;
    return part;
  }

  std::unique_ptr<Block> block_of(const LocalOperator& part, const Access& access) {
    const Tensor& tensor = model_.tensors[access.tensor];
    Region region;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      std::int64_t offset = 0, extent = 1;
      for (const std::uint8_t loop : access.walks[d]) {
        const LoopRange& range = part.loops[loop];
        offset = offset * range.whole + range.offset;
        extent *= range.size;
      }
      region.offset.push_back(access.walks[d].empty() ? 0 : offset);
      region.extent.push_back(access.walks[d].empty() ? tensor.shape[d] : extent);
    }
    const auto elements = static_cast<std::size_t>(region.elements());
    return std::make_unique<Block>(nowhere_, std::move(region), 4, Array::scratch(elements), false);
  }
  Block* make(const LocalOperator& part, const Access& access) {
    made_[access.tensor.index] = block_of(part, access);
    return made_[access.tensor.index].get();
  }

  const LocalOperator& at_;
  const Model& model_;
  Ledger nowhere_;
  std::vector<std::unique_ptr<Block>> made_;
  std::vector<const Block*> seen_;  ///< by tensor of the parts
};

}  // namespace

Expected<void> attention_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (arithmetic().on_device && out.size() > 1 && out[1]) out[1]->data.clear();
  return Parts(at, in).forward(out[0]);
}

Expected<void> attention_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  for (std::size_t k = 0; k < in.size(); ++k)
    if (!in[k] && at.op().inputs[k].saved) return at.error("backward needs an operand that the model does not save");
  Parts parts(at, in);
  if (auto done = parts.forward(nullptr); !done) return done;
  return parts.backward(gradient[0], result);
}

const HostKernel HostKernels::attention{{attention_forward, attention_backward},
                                        {attention_forward, attention_backward}};

}  // namespace turnpoint::step
