// SPDX-License-Identifier: Apache-2.0
#include "core/export/jax/kernels.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/cost/local_sizes.h"
#include "core/export/jax/formulas.h"
#include "core/model/operator_kind.h"

namespace turnpoint::jax {

std::uint32_t Place::axes_on(int loop) const {
  std::uint32_t axes = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (split.axis[static_cast<std::size_t>(a)] == loop) axes |= 1u << a;
  return axes;
}

std::int64_t Place::size(std::size_t loop) const {
  return op().dims[loop].size / mesh.size_of(axes_on(static_cast<int>(loop)));
}

std::string Place::start(int loop) const {
  const std::uint32_t axes = axes_on(loop);
  return axes == 0 ? "0" : fmt::format("start({}, {})", size(static_cast<std::size_t>(loop)), axis_list(mesh, axes));
}

std::vector<std::int64_t> Place::shape(const Access& access) const {
  const Tensor& tensor = model.tensors[access.tensor];
  const auto local = local_dims(op(), mesh, split);
  std::vector<std::int64_t> result;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) result.push_back(local_size(op(), tensor, access, d, local));
  return result;
}

std::string Place::starts(const Access& access) const {
  std::vector<std::string> words;
  for (const auto& walk : access.walks) words.push_back(walk.empty() ? "0" : start(walk.front()));
  return fmt::format("({}{})", joined(words), words.size() == 1 ? "," : "");
}

std::string weighing(const Place& place, std::size_t output) {
  const Access& y = place.op().outputs[output];
  return fmt::format("weighing({}, {}, {})", tuple_of(place.output(output).shape), place.starts(y),
                     tuple_of(place.shape(y)));
}

std::uint32_t Place::summed_axes() const {
  return forward_layout(op(), op().outputs.front(), true, split, mesh.count()).mask(Layout::kPartial);
}

Error Place::refuse(const std::string& why) const {
  return usage_error(
      fmt::format("operator '{}' ({}) cannot be written for JAX: {}", op().name, record_of(op().kind).name, why),
      model.name);
}

int dimension_of(const Access& access, int loop) {
  for (std::size_t d = 0; d < access.walks.size(); ++d)
    if (!access.walks[d].empty() && access.walks[d].front() == loop) return static_cast<int>(d);
  return -1;
}

std::optional<std::int64_t> channels_of_scores(const Model& model, const Operator& softmax) {
  const TensorId scores = softmax.inputs.front().tensor;
  const OperatorId producer = model.tensors[scores].producer;
  if (!producer.valid() || model.uses[scores].size() != 1) return std::nullopt;
  const Operator& product = model.operators[producer];
  if (product.kind != OperatorKind::matmul || product.inputs.size() != 2) return std::nullopt;
  for (const auto& access : product.inputs)
    if (model.tensors[storage_of(model, access.tensor)].role != TensorRole::activation) return std::nullopt;
  std::int64_t channels = 1;
  for (std::size_t l = 0; l < product.dims.size(); ++l)
    if (product.dims[l].role == DimRole::reduction) channels *= product.dims[l].size;
  return channels;
}

namespace {

const Formula* formula_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::matmul: return &kProduct;
    case OperatorKind::view: return &kView;
    case OperatorKind::elementwise: return &kElementwise;
    case OperatorKind::softmax: return &kSoftmax;
    case OperatorKind::normalisation: return &kNormalisation;
    case OperatorKind::reduction: return &kReduction;
    case OperatorKind::embedding: return &kEmbedding;
    case OperatorKind::loss_statistics: return &kLossStatistics;
    case OperatorKind::cross_entropy: return &kCrossEntropy;
    case OperatorKind::slice: return &kSlice;
    case OperatorKind::concat: return &kConcat;
    case OperatorKind::convolution: return &kConvolution;
    case OperatorKind::pooling: return &kPooling;
    case OperatorKind::input:
    case OperatorKind::recurrent:
    case OperatorKind::scan:
    case OperatorKind::attention:
    case OperatorKind::batch_normalisation:
    case OperatorKind::gather:
    case OperatorKind::opaque: break;
  }
  return nullptr;
}

}  // namespace

Expected<void> can_write(const Place& place) {
  const Operator& op = place.op();
  const Formula* formula = formula_of(op.kind);
  if (!formula)
    return place.refuse(op.kind == OperatorKind::attention
                            ? "attention as one kernel has no lines yet; search with --attention unfused"
                            : fmt::format("'{}' has no lines yet", op.detail));
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const Tensor& tensor = place.input(k);
    if (tensor.role == TensorRole::constant || tensor.role == TensorRole::buffer)
      return place.refuse(fmt::format("it reads '{}', whose numbers the model does not hold", tensor.name));
  }
  for (std::size_t l = 0; l < op.dims.size(); ++l)
    if (op.dims[l].role == DimRole::window && place.axes_on(static_cast<int>(l)))
      return place.refuse("the plan splits a dimension of windows");
  return formula->check(place);
}

void write_forward(const Place& place, const Values& values, Lines& lines) {
  formula_of(place.op().kind)->forward(place, values, lines);
}

void write_backward(const Place& place, const Values& values, Lines& lines) {
  formula_of(place.op().kind)->backward(place, values, lines);
}

std::map<std::string, std::string> assumptions(const Model& model) {
  std::map<std::string, std::string> taken;
  for (const Operator& op : model.operators) {
    if (op.kind == OperatorKind::normalisation) taken["EPSILON = 1e-5"] = "what norms add to the variance";
    if (op.rotates) taken["ROTARY_BASE = 10000.0"] = "of the angles by which queries and keys are rotated";
    if (op.kind == OperatorKind::softmax && channels_of_scores(model, op))
      taken["SCORE_SCALE = 1.0"] = "factor on attention's scores beside one over the root of a head's channels";
    if (op.kind == OperatorKind::elementwise && op.detail == "Dropout")
      taken["DROPOUT = 0.1"] = "part of the elements that dropout sets to zero";
    if (op.kind == OperatorKind::elementwise && op.detail == "Gelu")
      taken["GELU_BY_TANH = False"] = "which of the two GELUs it is";
    if (op.kind == OperatorKind::slice)
      taken["FIRST_POSITION = 0"] = "the row of a table of positions that the first token has";
  }
  return taken;
}

}  // namespace turnpoint::jax
