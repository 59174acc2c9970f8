// SPDX-License-Identifier: Apache-2.0
// Devices as a tree of groups, and the sequence of halves into which AccPar cuts it (section 5.1).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace turnpoint::accpar {

/// A device (no children) or a group of any number of devices and groups.
struct DeviceTree {
  std::string name;
  double flops = 0;   ///< of a device: FLOP/s
  double memory = 0;  ///< of a device: bytes
  double link = 0;    ///< of a group: bytes/s at which each child exchanges data with the others
  std::vector<DeviceTree> children;
};

DeviceTree device(std::string name, double flops, double memory);
DeviceTree group(std::string name, double link, std::vector<DeviceTree> children);
/// `count` copies of one child.
DeviceTree group_of(std::string name, double link, const DeviceTree& child, int count);

/// A device, or two halves. Equal subtrees are one part.
struct Part {
  double flops = 0;   ///< of all its devices
  double memory = 0;  ///< of all its devices
  std::uint32_t devices = 1;
  int levels = 0;                         ///< cuts from the whole part to its deepest device
  std::array<std::uint32_t, 2> halves{};  ///< indices of parts; meaningless for a device
  /// Bytes/s at which each half fetches from the other: its children together, each at the group's link.
  std::array<double, 2> bandwidth{};
  bool is_device() const { return devices == 1; }
  bool alike() const { return halves[0] == halves[1] && bandwidth[0] == bandwidth[1]; }
};

struct Bisection {
  std::vector<Part> parts;  ///< halves before what they are halves of; the whole is the last one
  /// The tree's devices, numbered depth first, in the order in which the halves list them, first half first.
  std::vector<std::uint32_t> order;
};

/// Cuts every group in two until only devices are left: unlike children first, where kinds that compute about as much
/// come to lie on either side, then equal ones into halves of equal number (the first half one more where that is odd).
/// Errors: no device at all, a group without children, a speed or link that is not above zero, all named.
Expected<Bisection> bisect(const DeviceTree& tree);

}  // namespace turnpoint::accpar
