// SPDX-License-Identifier: Apache-2.0
// Strong integer ids: an OperatorId cannot be mistaken for a TensorId, at no cost.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace turnpoint {

/// Index into one kind of container. Default-constructed ids are invalid.
template <class Tag>
struct Id {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  constexpr bool valid() const { return index != std::numeric_limits<std::uint32_t>::max(); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// std::vector indexed by a strong id.
template <class IdType, class T>
class IdVector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  T& operator[](IdType id) { return std::vector<T>::operator[](id.index); }
  const T& operator[](IdType id) const { return std::vector<T>::operator[](id.index); }
  IdType next_id() const { return IdType(this->size()); }
};

using OperatorId = Id<struct OperatorTag>;
using TensorId = Id<struct TensorTag>;

}  // namespace turnpoint

template <class Tag>
struct std::hash<turnpoint::Id<Tag>> {
  std::size_t operator()(turnpoint::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>()(id.index); }
};
