// SPDX-License-Identifier: Apache-2.0
// The network that gives groups devices (Trinity, section 4.2): a sequence-to-sequence network of two layers of long
// short-term memory with attention. The encoder reads the groups' features; the decoder names one device per group, in
// the groups' order, and is told the device that it named before.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/search/trinity/networks/layers.h"

namespace turnpoint::trinity {

struct ScheduleShape {
  std::size_t groups = 1, width = 1;  ///< features of a group
  std::size_t devices = 1, device_width = 0;
  std::size_t hidden = 64, embedding = 16;
  /// The decoder is told the encoder's output of the group whose turn it is; otherwise attention has to find it, as in
  /// the paper.
  bool reads_group = true;
  networks::Clipping clipping;
};

template <class Real>
class ScheduleNetwork {
 public:
  static constexpr std::size_t kLayers = 2;

  /// `device_features` (devices x device_width) tells devices apart that differ.
  ScheduleNetwork(const ScheduleShape& shape, std::vector<float> device_features);
  const networks::Places& places() const { return places_; }
  const ScheduleShape& shape() const { return shape_; }

  struct Encoded {
    std::size_t rows = 0;
    std::vector<Real> features;  ///< groups rows x width
    std::array<networks::Lstm::Trace<Real>, kLayers> layers;
    networks::Attention::Keys<Real> keys;
  };
  struct Decoded {
    std::vector<Real> input;
    std::array<networks::Lstm::Trace<Real>, kLayers> layers;
    networks::Attention::Trace<Real> attention;
    std::vector<Real> scores;           ///< groups rows x devices, clipped
    std::vector<Real> log_probability;  ///< likewise
  };
  /// `features`: groups rows x width, group by group with the rollouts side by side.
  void encode(const Real* weights, std::vector<Real> features, std::size_t rows, Encoded& encoded) const;
  /// Names devices step by step: `choose` gets the group, the row and the device's log-probabilities, whose choice is
  /// the next step's input. What it decides equals decode() of the same devices.
  using Choose = std::function<std::uint32_t(std::size_t group, std::size_t row, const Real* log_probability)>;
  void choose_devices(const Real* weights, const Encoded& encoded, const Choose& choose) const;
  /// All steps at once, for devices that are known: device[group * rows + row].
  void decode(const Real* weights, const Encoded& encoded, const std::vector<std::uint32_t>& device,
              Decoded& decoded) const;
  /// Adds to `gradient`, from derivatives by the clipped scores.
  void backward(const Real* weights, const Encoded& encoded, const std::vector<std::uint32_t>& device,
                const Decoded& decoded, std::vector<Real> d_scores, Real* gradient) const;

 private:
  std::size_t input_width() const {
    return shape_.embedding + shape_.device_width + (shape_.reads_group ? shape_.hidden : 0);
  }
  /// `before`: shape_.devices stands for none.
  void write_input(const Real* weights, const Encoded& encoded, std::size_t group, std::size_t row, std::size_t before,
                   Real* to) const;
  void score(const Real* weights, const Real* outputs, const Real* context, std::size_t rows,
             std::vector<Real>& scores) const;

  ScheduleShape shape_;
  std::vector<float> device_features_;
  networks::Places places_;
  networks::Slot start_, embedding_, out_context_;
  std::array<networks::Lstm, kLayers> encoder_, decoder_;
  networks::Attention attention_;
  networks::Dense out_;
};

}  // namespace turnpoint::trinity
