// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/onednn.h"

#include <algorithm>
#include <array>
#include <map>

#include "gpu_probe/cpu/onednn_library.h"

namespace turnpoint::probe {

using namespace dnnl;

namespace {

const Onednn& library() {
  static const Onednn loaded;
  return loaded;
}

/// Work of a rank is done by the thread that asks for it.
Handle stream() {
  struct Stream {
    Handle handle = nullptr;
    Stream() {
      if (library().stream_create(&handle, library().engine(), kInOrder) != 0) handle = nullptr;
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() {
      if (handle) library().stream_destroy(handle);
    }
  };
  thread_local const Stream mine;
  return mine.handle;
}

/// Attributes by which primitives take their scratch memory from us, so that it is counted.
Handle scratch_of_ours() {
  static const Handle made = [] {
    Handle attributes = nullptr;
    const bool good =
        library().attributes_create(&attributes) == 0 && library().attributes_scratch(attributes, kScratchOfUser) == 0;
    return good ? attributes : nullptr;
  }();
  return made;
}

/// Something to execute, with the memory objects of its arguments.
class Primitive {
 public:
  Primitive() = default;
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;
  ~Primitive() {
    for (const auto& argument : arguments_) library().memory_destroy(argument.memory);
    if (made_) library().primitive_destroy(made_);
  }
  /// Takes the description.
  bool make(Handle description) {
    if (!description) return false;
    const bool good = library().primitive_create(&made_, description) == 0;
    library().description_destroy(description);
    return good;
  }
  bool add(int kind, const void* description) {
    Handle memory = nullptr;
    if (!description || library().memory_create(&memory, description, library().engine(), nullptr) != 0) return false;
    arguments_.push_back({kind, memory});
    return true;
  }
  bool run(std::initializer_list<const float*> data) const {
    auto argument = arguments_.begin();
    for (const float* place : data)
      if (argument != arguments_.end() && library().memory_set((argument++)->memory, const_cast<float*>(place)) != 0)
        return false;
    return library().primitive_execute(made_, stream(), static_cast<int>(arguments_.size()), arguments_.data()) == 0;
  }

 private:
  Handle made_ = nullptr;
  std::vector<Argument> arguments_;
};

/// A tensor of the convolution: row-major outside, in a layout of the library's inside.
struct Operand {
  Primitive change;  ///< of the layout
  bool changes = false;
  std::int64_t offset = 0;  ///< of its copy in the scratch memory, elements
};

constexpr std::int64_t kAlignment = 16;  // elements: 64 bytes

class Made : public OnednnConvolution {
 public:
  bool make(ConvolutionPhase phase, const ConvolutionSizes& z) {
    const Onednn& lib = library();
    const std::int64_t g = z.groups;
    const std::array<std::vector<std::int64_t>, 3> sizes{
        std::vector{z.n, z.c, z.h, z.w},
        g > 1 ? std::vector{g, z.k / g, z.c / g, z.r, z.s} : std::vector{z.k, z.c, z.r, z.s},
        std::vector{z.n, z.k, z.p, z.q}};
    std::array<Onednn::Description, 3> any, plain;
    for (std::size_t i = 0; i < 3; ++i) {
      any[i] = lib.any(sizes[i]);
      plain[i] = lib.plain(sizes[i]);
      if (!any[i].get() || !plain[i].get()) return false;
    }
    Onednn::Convolution wanted{&any[0], &any[1], &any[2]};
    const auto behind = [](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                           std::int64_t dilation, std::int64_t before) {
      return std::max<std::int64_t>(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - in - before);
    };
    wanted.strides = {z.stride_h, z.stride_w};
    wanted.dilations = {z.dilation_h - 1, z.dilation_w - 1};
    wanted.before = {z.pad_h, z.pad_w};
    wanted.behind = {behind(z.h, z.p, z.r, z.stride_h, z.dilation_h, z.pad_h),
                     behind(z.w, z.q, z.s, z.stride_w, z.dilation_w, z.pad_w)};
    const Handle attributes = scratch_of_ours();
    if (!attributes) return false;
    Handle forward = lib.convolution(Onednn::Phase::forward, wanted, nullptr, attributes);
    if (!forward) return false;
    Handle description = forward;
    if (phase != ConvolutionPhase::forward) {
      const auto which = phase == ConvolutionPhase::data ? Onednn::Phase::data : Onednn::Phase::filter;
      description = lib.convolution(which, wanted, forward, attributes);
      lib.description_destroy(forward);
      if (!description) return false;
    }
    const char* name = nullptr;
    if (lib.query(description, kQueryName, 0, &name) == 0 && name) name_ = name;

    struct Role {
      std::size_t tensor;
      int query, argument;
    };
    constexpr std::array<std::array<Role, 3>, 3> kRoles{
        std::array<Role, 3>{Role{0, kQuerySource, kSource}, {1, kQueryWeights, kWeights}, {2, kQueryResult, kResult}},
        std::array<Role, 3>{Role{1, kQueryWeights, kWeights},
                            {2, kQueryResultGradient, kResultGradient},
                            {0, kQuerySourceGradient, kSourceGradient}},
        std::array<Role, 3>{Role{0, kQuerySource, kSource},
                            {2, kQueryResultGradient, kResultGradient},
                            {1, kQueryWeightsGradient, kWeightsGradient}}};
    const auto& roles = kRoles[static_cast<std::size_t>(phase)];
    bool good = true;
    for (std::size_t i = 0; i < 3 && good; ++i) {
      const void* inside = lib.query_description(description, roles[i].query, 0);
      const void* outside = plain[roles[i].tensor].get();
      good = inside && compute_.add(roles[i].argument, inside);
      if (!good || lib.description_equal(inside, outside)) continue;
      operands_[i].changes = true;
      operands_[i].offset = reserve(inside);
      const bool in = i < 2;
      const void *from = in ? outside : inside, *to = in ? inside : outside;
      Handle change = nullptr;
      good = lib.reorder(&change, from, lib.engine(), to, lib.engine(), nullptr) == 0 &&
             operands_[i].change.make(change) && operands_[i].change.add(kSource, from) &&
             operands_[i].change.add(kResult, to);
    }
    if (const void* room = lib.query_description(description, kQueryScratch, 0); good && room) {
      room_ = reserve(room);
      good = compute_.add(kScratch, room);
    }
    return compute_.make(description) && good && stream();
  }

  std::int64_t scratch() const override { return scratch_ + kAlignment; }
  std::string implementation() const override { return name_; }

  bool run(const float* a, const float* b, float* to, float* scratch) const override {
    const auto misaligned =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(scratch) / sizeof(float) % kAlignment);
    float* room = scratch + (misaligned == 0 ? 0 : kAlignment - misaligned);
    const std::array<const float*, 3> outside{a, b, to};
    std::array<const float*, 3> inside = outside;
    for (std::size_t i = 0; i < 3; ++i)
      if (operands_[i].changes) inside[i] = room + operands_[i].offset;
    for (std::size_t i = 0; i < 2; ++i)
      if (operands_[i].changes && !operands_[i].change.run({outside[i], inside[i]})) return false;
    if (!compute_.run({inside[0], inside[1], inside[2], room + room_})) return false;
    if (operands_[2].changes && !operands_[2].change.run({inside[2], outside[2]})) return false;
    return library().stream_wait(stream()) == 0;
  }

 private:
  /// Room for a tensor in the scratch memory.
  std::int64_t reserve(const void* description) {
    const std::int64_t at = scratch_;
    const auto elements = static_cast<std::int64_t>((library().description_size(description) + 3) / 4);
    scratch_ += (elements + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }

  Primitive compute_;
  std::array<Operand, 3> operands_;
  std::int64_t scratch_ = 0, room_ = 0;
  std::string name_;
};

}  // namespace

const Onednn* onednn() { return library().loaded() ? &library() : nullptr; }
const std::vector<std::string>& onednn_missing() { return library().missing; }
std::string onednn_version(const Onednn& loaded) { return loaded.version; }

void onednn_gemm(const GemmShape& s, const float* a, const float* b, float beta, float* c) {
  const int failed = library().sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a,
                                     s.lead_a(), b, s.lead_b(), beta, c, s.lead_c());
  if (failed != 0) gemm(s, a, b, beta, c);
}

const OnednnConvolution* OnednnConvolution::find(ConvolutionPhase phase, const ConvolutionSizes& z) {
  if (!onednn()) return nullptr;
  using Key = std::array<std::int64_t, 17>;
  thread_local std::map<Key, std::unique_ptr<Made>> kept;
  const Key key{static_cast<std::int64_t>(phase),
                z.n,
                z.c,
                z.h,
                z.w,
                z.k,
                z.r,
                z.s,
                z.p,
                z.q,
                z.stride_h,
                z.stride_w,
                z.pad_h,
                z.pad_w,
                z.dilation_h,
                z.dilation_w,
                z.groups};
  const auto [entry, added] = kept.try_emplace(key);
  if (added) {
    auto made = std::make_unique<Made>();
    if (made->make(phase, z)) entry->second = std::move(made);
  }
  return entry->second.get();
}

}  // namespace turnpoint::probe
