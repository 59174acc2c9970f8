// SPDX-License-Identifier: Apache-2.0
// What the built-in vision networks are written with.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/import/builtin/networks.h"
#include "core/model/builder.h"

namespace turnpoint {

/// A convolutional network under construction: one running tensor x [batch, channel, height, width], which every layer
/// replaces; branches save and restore it.
class VisionNetwork {
 public:
  VisionNetwork(const NetworkParameters& p, std::int64_t channels, std::int64_t image);

  void scope(const std::string& name);
  TensorId x() const { return x_; }
  void set_x(TensorId x) { x_ = x; }
  std::int64_t channels() const { return builder_.tensor(x_).shape[1]; }
  std::int64_t side() const { return builder_.tensor(x_).shape[2]; }

  /// Square kernel.
  void convolution(const std::string& name, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                   std::int64_t padding, bool bias);
  /// {height, width} of kernel and padding.
  using Pair = std::pair<std::int64_t, std::int64_t>;
  void convolution(const std::string& name, std::int64_t out, Pair kernel, std::int64_t stride, Pair padding,
                   bool bias);
  /// One filter per channel; padding keeps the size at stride 1.
  void depthwise(const std::string& name, std::int64_t kernel, std::int64_t stride);
  void batch_norm(const std::string& name);
  void relu(const std::string& name);
  /// Without bias; padding keeps the size at stride 1.
  void convolution_norm_relu(const std::string& name, std::int64_t out, std::int64_t kernel, std::int64_t stride);
  void add(const std::string& name, TensorId other);
  void concat(const std::string& name, const std::vector<TensorId>& parts);  ///< along the channels
  void pool(const std::string& name, const char* detail, std::int64_t kernel, std::int64_t stride,
            std::int64_t padding = 0);  ///< "MaxPool" or "AveragePool"
  void global_pool();
  void flatten();
  void linear(const std::string& name, std::int64_t out);
  /// Cross-entropy against one label per sample.
  Expected<ModelPtr> finish();

 private:
  ModelBuilder builder_;
  std::int64_t batch_;
  TensorId x_;
  std::string prefix_;
};

}  // namespace turnpoint
