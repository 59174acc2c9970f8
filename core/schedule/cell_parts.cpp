// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/cell_parts.h"

#include <algorithm>
#include <numeric>

namespace turnpoint {
namespace {

using Work = CellPart::Work;
using Parts = std::vector<CellPart>;

Parts lstm() {
  return {
      {"input-product", Work::product, 1, {}, {}, {}, true},
      {"state-product", Work::product, 2, {}, {11}, {}, false},
      {"sum", Work::elementwise, 0, {0, 1}, {}, {}, false},
      {"input-gate", Work::elementwise, 0, {2}, {}, {}, false},
      {"forget-gate", Work::elementwise, 0, {2}, {}, {}, false},
      {"output-gate", Work::elementwise, 0, {2}, {}, {}, false},
      {"candidate", Work::elementwise, 0, {2}, {}, {}, false},
      {"keep", Work::elementwise, 0, {4}, {9}, {}, false},
      {"add", Work::elementwise, 0, {3, 6}, {}, {}, false},
      {"cell", Work::elementwise, 0, {7, 8}, {}, {}, false},
      {"squash", Work::elementwise, 0, {9}, {}, {}, false},
      {"output", Work::elementwise, 0, {5, 10}, {}, {}, false},
  };
}

Parts gru() {
  return {
      {"input-product", Work::product, 1, {}, {}, {}, true},
      {"state-product", Work::product, 2, {}, {9}, {}, false},
      {"update-sum", Work::elementwise, 0, {0, 1}, {}, {}, false},
      {"reset-sum", Work::elementwise, 0, {0, 1}, {}, {}, false},
      {"update-gate", Work::elementwise, 0, {2}, {}, {}, false},
      {"reset-gate", Work::elementwise, 0, {3}, {}, {}, false},
      {"reset", Work::elementwise, 0, {1, 5}, {}, {}, false},
      {"candidate", Work::elementwise, 0, {0, 6}, {}, {}, false},
      {"keep", Work::elementwise, 0, {4}, {9}, {}, false},
      {"output", Work::elementwise, 0, {4, 7, 8}, {}, {}, false},
  };
}

Parts plain() {
  return {
      {"input-product", Work::product, 1, {}, {}, {}, true},
      {"state-product", Work::product, 2, {}, {3}, {}, false},
      {"sum", Work::elementwise, 0, {0, 1}, {}, {}, false},
      {"output", Work::elementwise, 0, {2}, {}, {}, false},
  };
}

/// Weights: input (7 gates), state (4), memory (4), cell to output gate, memory to output gate, fusion.
Parts eidetic() {
  return {
      {"input-product", Work::product, 1, {}, {}, {}, true},
      {"state-product", Work::product, 2, {}, {31}, {}, false},
      {"memory-product", Work::product, 3, {}, {22}, {}, false},
      {"recall-sum", Work::elementwise, 0, {0, 1}, {}, {}, false},
      {"input-sum", Work::elementwise, 0, {0, 1}, {}, {}, false},
      {"candidate-sum", Work::elementwise, 0, {0, 1}, {}, {}, false},
      {"recall-gate", Work::elementwise, 0, {3}, {}, {}, false},
      {"input-gate", Work::elementwise, 0, {4}, {}, {}, false},
      {"candidate", Work::elementwise, 0, {5}, {}, {}, false},
      {"recall-scores", Work::recall, 0, {6}, {}, {15}, false},
      {"recall-weights", Work::elementwise, 0, {9}, {}, {}, false},
      {"recall-mean", Work::recall, 0, {10}, {}, {15}, false},
      {"recall-add", Work::elementwise, 0, {11}, {15}, {}, false},
      {"recall-norm", Work::elementwise, 0, {12}, {}, {}, false},
      {"add", Work::elementwise, 0, {7, 8}, {}, {}, false},
      {"cell", Work::elementwise, 0, {13, 14}, {}, {}, false},
      {"memory-input-sum", Work::elementwise, 0, {0, 2}, {}, {}, false},
      {"memory-candidate-sum", Work::elementwise, 0, {0, 2}, {}, {}, false},
      {"memory-forget-sum", Work::elementwise, 0, {0, 2}, {}, {}, false},
      {"memory-input-gate", Work::elementwise, 0, {16}, {}, {}, false},
      {"memory-candidate", Work::elementwise, 0, {17}, {}, {}, false},
      {"memory-forget-gate", Work::elementwise, 0, {18}, {}, {}, false},
      {"memory", Work::elementwise, 0, {19, 20, 21}, {22}, {}, false},
      {"cell-product", Work::product, 4, {15}, {}, {}, false},
      {"memory-gate-product", Work::product, 5, {22}, {}, {}, false},
      {"output-sum", Work::elementwise, 0, {0, 1, 2, 23, 24}, {}, {}, false},
      {"output-gate", Work::elementwise, 0, {25}, {}, {}, false},
      {"join", Work::elementwise, 0, {15, 22}, {}, {}, false},
      {"fusion-product", Work::product, 6, {27}, {}, {}, false},
      {"fusion-bias", Work::elementwise, 0, {28}, {}, {}, false},
      {"squash", Work::elementwise, 0, {29}, {}, {}, false},
      {"output", Work::elementwise, 0, {26, 30}, {}, {}, false},
  };
}

Parts any_cell(const std::vector<std::uint32_t>& weights) {
  Parts parts;
  const auto last = std::uint32_t(weights.size());
  for (std::uint32_t i = 0; i < last; ++i) {
    CellPart part{"product", Work::product, weights[i], {}, {}, {}, i == 0};
    if (i > 0) part.old = {last};
    parts.push_back(std::move(part));
  }
  CellPart rest{"output", Work::elementwise, 0, {}, {last}, {}, weights.empty()};
  rest.of.resize(last);
  std::iota(rest.of.begin(), rest.of.end(), 0u);
  parts.push_back(std::move(rest));
  return parts;
}

/// Inputs that are weights of products; biases have one dimension per direction.
std::vector<std::uint32_t> weights_of(const Model& model, const Operator& op) {
  std::vector<std::uint32_t> weights;
  for (std::uint32_t i = 1; i < op.inputs.size(); ++i)
    if (model.tensors[op.inputs[i].tensor].shape.size() >= 3) weights.push_back(i);
  return weights;
}

bool is_eidetic(const Operator& op) { return op.detail == "E3D-LSTM"; }

Parts parts_of(const Operator& op, const std::vector<std::uint32_t>& weights) {
  const bool two = weights.size() == 2 && weights[0] == 1 && weights[1] == 2;
  if (two && op.detail == "LSTM") return lstm();
  if (two && op.detail == "GRU") return gru();
  if (two && op.detail == "RNN") return plain();
  if (is_eidetic(op) && weights.size() == 6) return eidetic();
  return any_cell(weights);
}

/// Multiply-accumulates of a weight are its elements times the positions it is applied to.
double positions(const Operator& op) {
  double product = 1;
  for (const LoopDimension& dim : op.dims)
    if (dim.name == DimName::batch || dim.name == DimName::time || dim.role == DimRole::window)
      product *= double(dim.size);
  return product;
}

void share_time(const Model& model, const Operator& op, CellProgram& program) {
  std::vector<double> flop(program.parts.size(), 0);
  const auto count = [&](Work work) {
    return double(
        std::count_if(program.parts.begin(), program.parts.end(), [&](const CellPart& p) { return p.work == work; }));
  };
  double products = 0;
  for (std::size_t i = 0; i < flop.size(); ++i)
    if (program.parts[i].work == Work::product) {
      flop[i] = 2 * positions(op) * double(model.tensors[op.inputs[program.parts[i].weight].tensor].elements());
      products += flop[i];
    }
  const double recalls = count(Work::recall), recall = std::max(0.0, 2 * op.forward_macs - products);
  double rest = std::max(0.0, op.forward_flop - 2 * op.forward_macs);
  if (recalls == 0) rest = std::max(0.0, op.forward_flop - products);
  for (std::size_t i = 0; i < flop.size(); ++i) {
    if (program.parts[i].work == Work::recall) flop[i] = recall / recalls;
    if (program.parts[i].work == Work::elementwise) flop[i] = rest / count(Work::elementwise);
  }
  const double sum = std::accumulate(flop.begin(), flop.end(), 0.0);
  program.share.assign(flop.size(), 1 / double(flop.size()));
  if (sum > 0)
    for (std::size_t i = 0; i < flop.size(); ++i) program.share[i] = flop[i] / sum;
}

}  // namespace

bool CellProgram::reads(std::uint32_t part, std::uint32_t of) const {
  const auto& row = parts[part].of;
  return std::find(row.begin(), row.end(), of) != row.end();
}

std::uint32_t CellProgram::product_of(std::uint32_t parameter) const {
  for (std::uint32_t part = 0; part < parts.size(); ++part)
    if (parts[part].work == CellPart::Work::product && parts[part].weight == parameter) return part;
  return 0;
}

std::vector<std::uint32_t> CellProgram::product_readers() const {
  std::vector<std::uint32_t> readers;
  for (std::uint32_t part = 0; part < parts.size(); ++part)
    if (std::any_of(parameters.begin(), parameters.end(),
                    [&](std::uint32_t parameter) { return reads(part, product_of(parameter)); }))
      readers.push_back(part);
  return readers;
}

std::int64_t gate_gradients(const Operator& op, std::int64_t gates) {
  return op.detail == "GRU" ? gates + gates / 3 : gates;
}

std::int64_t time_steps(const Operator& op) {
  for (const LoopDimension& dim : op.dims)
    if (dim.name == DimName::time) return dim.size;
  return 1;
}

CellProgram cell_program(const Model& model, const Operator& op, bool in_parts) {
  CellProgram program;
  const auto weights = weights_of(model, op);
  if (in_parts) {
    program.parts = parts_of(op, weights);
  } else {
    program.parts = {{"step", Work::elementwise, 0, {}, {0}, {}, true}};
    if (is_eidetic(op)) program.parts[0].all = {0};
  }
  share_time(model, op, program);
  program.states = op.detail == "LSTM" ? 2 : is_eidetic(op) ? 3 : 1;
  // Weights of cells made of products have one row of gates per direction; convolutions have no directions.
  if (!weights.empty())
    if (const auto& shape = model.tensors[op.inputs[weights[0]].tensor].shape; shape.size() == 3)
      program.directions = std::uint32_t(std::clamp<std::int64_t>(shape[0], 1, 2));
  double elements = 0;
  for (std::uint32_t i = 0; i < op.inputs.size(); ++i) {
    const Tensor& tensor = model.tensors[op.inputs[i].tensor];
    if (tensor.role != TensorRole::parameter || !tensor.requires_gradient) continue;
    program.parameters.push_back(i);
    program.parameter_share.push_back(double(tensor.elements()));
    elements += double(tensor.elements());
  }
  for (double& share : program.parameter_share) share /= elements;
  return program;
}

}  // namespace turnpoint
