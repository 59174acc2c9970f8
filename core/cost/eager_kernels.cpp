// SPDX-License-Identifier: Apache-2.0
#include "core/cost/eager_kernels.h"

#include "core/cost/operator_cost.h"
#include "core/model/split_loss.h"

namespace turnpoint {

namespace {

// x.to(fp32), pow(2), mean, + eps, rsqrt, x * it, to(16 bits), weight * it. Backward: the two gradients of the last
// product and the sum over rows of one, the cast, the two of the product with the root and the sum of one, the mean's,
// the square's (pow, * 2, * gradient), the sum of both ways, the cast. The fp32 input and the normalised rows are kept,
// the 16-bit input is not.
constexpr EagerKernels kRmsNorm = {{2, 5, 2, 8}, {6, 17, 2, 16}, 0, 1, 0};

// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))): eight kernels. Backward: two for the product of both
// halves, the tanh's, two scales, three for the cube, a half, two sums of what comes back to x. Both halves and the
// tanh are kept.
constexpr EagerKernels kGeluNew = {{18, 0, 0, 8}, {28, 0, 0, 11}, 3, 0, 0};

// x * sigmoid(1.702 * x).
constexpr EagerKernels kQuickGelu = {{7, 0, 0, 3}, {14, 0, 0, 5}, 1, 0, 0};

// act(gate) * up: the product is a kernel of its own, and keeps the activation.
constexpr EagerKernels kGated = {{5, 0, 0, 2}, {9, 0, 0, 3}, 1, 0, 0};
constexpr EagerKernels kReluGated = {{5, 0, 0, 2}, {9, 0, 0, 3}, 0, 0, 0};  // which has the activation in any case
constexpr EagerKernels kQuickGeluGated = {{10, 0, 0, 4}, {20, 0, 0, 7}, 2, 0, 0};
constexpr EagerKernels kGeluNewGated = {{21, 0, 0, 9}, {34, 0, 0, 13}, 4, 0, 0};

// q * cos + rotate_half(q) * sin, where rotate_half is a negation of one half and a concatenation; backward fills up
// the gradient of each half and sums twice. Sines and cosines need no gradient, so that nothing is kept.
constexpr EagerKernels kRotation = {{10, 0, 0, 5}, {15, 0, 0, 9}, 0, 0, 0, false};

// logits.float(), log_softmax; backward: the negative log-likelihood's gradient, as large as the logits, that of
// log_softmax, the cast. What log_softmax made is kept until then and stands beside both gradients, of which the second
// is in fp32. The logits themselves are what the model returns.
constexpr EagerKernels kLoss = {{0, 2, 1, 3}, {0, 4, 1, 4}, 0, 2, 1};

constexpr std::string_view kGatedBy = "*up";  // as core/import/transformer names it

bool is_loss(const Operator& op) {
  return op.kind == OperatorKind::loss_statistics || op.kind == OperatorKind::cross_entropy;
}

/// A loss is in fp32 where the scenario says so, norms always.
double wide_bytes(const Settings& settings, const Operator& op, double plain) {
  return is_loss(op) && settings.loss != LossPrecision::fp32 ? plain : 4;
}

}  // namespace

const EagerKernels* eager_kernels(const Operator& op) {
  switch (op.kind) {
    case OperatorKind::normalisation:
      return op.detail == "RMSNorm" ? &kRmsNorm : nullptr;  // that of a file is one operator there
    case OperatorKind::elementwise:
      if (op.detail.ends_with(kGatedBy))
        return op.detail.starts_with("gelu_new")     ? &kGeluNewGated
               : op.detail.starts_with("quick_gelu") ? &kQuickGeluGated
               : op.detail.starts_with("relu")       ? &kReluGated
                                                     : &kGated;
      return op.detail == "gelu_new" ? &kGeluNew : op.detail == "quick_gelu" ? &kQuickGelu : nullptr;
    case OperatorKind::matmul: return op.rotates ? &kRotation : nullptr;
    case OperatorKind::loss_statistics: return &kLoss;
    case OperatorKind::cross_entropy: return reads_statistics(op) ? nullptr : &kLoss;
    default: return nullptr;
  }
}

EagerElements eager_elements(const Operator& op) {
  if (is_loss(op)) return {op.inputs.front(), false};
  return {op.outputs.front(), true};
}

double local_eager_elements(const Model& model, const Operator& op, const Configuration& split, const Mesh& mesh) {
  const auto [access, is_output] = eager_elements(op);
  const Layout layout = forward_layout(op, access, is_output, split, mesh.count()).without_partial();
  return static_cast<double>(local_elements(mesh, layout, model.tensors[access.tensor].shape));
}

double eager_bytes(const Settings& settings, const Operator& op, const KernelTraffic& traffic, double elements) {
  const double plain = settings.precision == Precision::fp32 ? 4 : 2, wide = wide_bytes(settings, op, plain);
  return elements *
         (traffic.plain * plain + traffic.wide * wide + (plain == wide ? 0 : traffic.casts * (plain + wide)));
}

void charge_eagerly(const Settings& settings, const Operator& op, const EagerKernels& kernels, bool backward,
                    double elements, PhaseWork& work) {
  const KernelTraffic& traffic = backward ? kernels.backward : kernels.forward;
  const double plain = settings.precision == Precision::fp32 ? 4 : 2;
  const bool casts = plain != wide_bytes(settings, op, plain);  // where all is in one precision none is launched
  (kernels.instead ? work.bytes : work.beside_bytes) = eager_bytes(settings, op, traffic, elements);
  work.more_kernels = traffic.kernels - (casts ? 0 : int(traffic.casts)) - (kernels.instead ? 1 : 0);
}

double eager_kept_bytes(const Settings& settings, const Operator& op, const EagerKernels& kernels, double elements) {
  const double plain = settings.precision == Precision::fp32 ? 4 : 2;
  const double wide = wide_bytes(settings, op, plain);
  return elements * (kernels.kept_plain * plain + kernels.kept_wide * wide + kernels.kept_grown * (wide - plain));
}

}  // namespace turnpoint
