// SPDX-License-Identifier: Apache-2.0
// The part of oneDNN's C interface that is used, of version 2 and of version 3. A test compares sizes and constants
// with the real header where that is installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace turnpoint::probe {

namespace dnnl {
inline constexpr int kF32 = 3, kAnyLayout = 1, kCpu = 1, kInOrder = 1, kForwardTraining = 64, kDirect = 1;
inline constexpr int kQuerySource = 129, kQuerySourceGradient = 130, kQueryWeights = 131, kQueryWeightsGradient = 132,
                     kQueryResult = 133, kQueryResultGradient = 134, kQueryScratch = 136, kQueryName = 8;
inline constexpr int kSource = 1, kResult = 17, kWeights = 33, kScratch = 80, kSourceGradient = 129,
                     kResultGradient = 145, kWeightsGradient = 161;
inline constexpr int kScratchOfUser = 1;
inline constexpr int kMostDims = 12;
using Handle = void*;
using Dims = std::array<std::int64_t, kMostDims>;
struct Argument {
  int kind;
  Handle memory;
};
/// Room for version 2's structures, which callers own.
inline constexpr std::size_t kDescriptionRoom = 2048, kOperationRoom = 16384;
}  // namespace dnnl

/// Functions return 0 for success. Descriptions of memory and operations are opaque: version 2 fills room of the
/// caller's, version 3 hands out objects of its own.
class Onednn {
 public:
  /// Empty path: the usual names. Without `loaded()`, `missing` says why.
  explicit Onednn(const std::string& path = {});
  bool loaded() const { return engine_ != nullptr; }

  /// Shape and layout of a tensor in memory.
  class Description {
   public:
    Description() = default;
    Description(Description&& other) noexcept;
    Description& operator=(Description&& other) noexcept;
    ~Description();
    const void* get() const { return object_; }

   private:
    friend class Onednn;
    std::vector<std::max_align_t> room_;
    void* object_ = nullptr;
    int (*destroy_)(void*) = nullptr;
  };
  Description plain(const std::vector<std::int64_t>& sizes) const;
  Description any(const std::vector<std::int64_t>& sizes) const;

  enum class Phase : std::uint8_t { forward, data, filter };
  /// Sizes and what lies between; [height, width].
  struct Convolution {
    const Description *source, *weights, *result;
    dnnl::Dims strides{}, dilations{}, before{}, behind{};
  };
  /// A primitive's description; null: there is none. `forward` serves the other phases as a hint.
  dnnl::Handle convolution(Phase phase, const Convolution& sizes, dnnl::Handle forward, dnnl::Handle attributes) const;

  // The rest is equal in both versions.
  int version_major = 0;
  std::string version, file;
  std::vector<std::string> missing;
  dnnl::Handle engine() const { return engine_; }
  int (*sgemm)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t, const float*,
               std::int64_t, float, float*, std::int64_t) = nullptr;
  int (*stream_create)(dnnl::Handle*, dnnl::Handle, unsigned) = nullptr;
  int (*stream_wait)(dnnl::Handle) = nullptr;
  int (*stream_destroy)(dnnl::Handle) = nullptr;
  int (*memory_create)(dnnl::Handle*, const void*, dnnl::Handle, void*) = nullptr;
  int (*memory_set)(dnnl::Handle, void*) = nullptr;
  int (*memory_destroy)(dnnl::Handle) = nullptr;
  int (*description_equal)(const void*, const void*) = nullptr;
  std::size_t (*description_size)(const void*) = nullptr;
  const void* (*query_description)(dnnl::Handle, int, int) = nullptr;
  int (*query)(dnnl::Handle, int, int, void*) = nullptr;
  int (*reorder)(dnnl::Handle*, const void*, dnnl::Handle, const void*, dnnl::Handle, dnnl::Handle) = nullptr;
  int (*description_destroy)(dnnl::Handle) = nullptr;  ///< of a primitive
  int (*primitive_create)(dnnl::Handle*, dnnl::Handle) = nullptr;
  int (*primitive_execute)(dnnl::Handle, dnnl::Handle, int, const dnnl::Argument*) = nullptr;
  int (*primitive_destroy)(dnnl::Handle) = nullptr;
  int (*attributes_create)(dnnl::Handle*) = nullptr;
  int (*attributes_scratch)(dnnl::Handle, int) = nullptr;

 private:
  bool load(const std::string& name);
  void* entry(const char* name);

  void* library_ = nullptr;
  dnnl::Handle engine_ = nullptr;
  std::string absent_;  ///< the first function that is not in the library
  // Version 2.
  void *init_by_tag_ = nullptr, *init_by_strides_ = nullptr, *primitive_desc_create_ = nullptr;
  // Version 3.
  void *create_with_tag_ = nullptr, *create_with_strides_ = nullptr, *memory_desc_destroy_ = nullptr;
  std::array<void*, 3> convolutions_{};  ///< by Phase
};

}  // namespace turnpoint::probe
