// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/onednn_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <utility>

namespace turnpoint::probe {

using namespace dnnl;

namespace {

struct Version {
  int major, minor, patch;
};

Dims dims_of(const std::vector<std::int64_t>& sizes) {
  Dims dims{};
  std::copy(sizes.begin(), sizes.end(), dims.begin());
  return dims;
}

}  // namespace

Onednn::Description::Description(Description&& other) noexcept { *this = std::move(other); }

Onednn::Description& Onednn::Description::operator=(Description&& other) noexcept {
  std::swap(room_, other.room_);
  std::swap(object_, other.object_);
  std::swap(destroy_, other.destroy_);
  return *this;
}

Onednn::Description::~Description() {
  if (destroy_ && object_) destroy_(object_);
}

Onednn::Onednn(const std::string& path) {
  // A rank is one core: threads of the library's own would fight with the other ranks.
  setenv("OMP_NUM_THREADS", "1", 1);
  const std::vector<std::string> names =
      path.empty() ? std::vector<std::string>{"libdnnl.so.3", "libdnnl.so.2"} : std::vector<std::string>{path};
  for (const auto& name : names)
    if (load(name)) return;
}

void* Onednn::entry(const char* name) {
  void* found = dlsym(library_, name);
  if (!found && absent_.empty()) absent_ = name;
  return found;
}

bool Onednn::load(const std::string& name) {
  absent_.clear();
  library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    // "cannot open shared object file" means that it is not installed; anything else is worth its words.
    const std::string why = dlerror();
    const bool not_there = why.find(name + ": cannot open") != std::string::npos;
    missing.push_back(not_there ? name + ": not found" : fmt::format("{}: {}", name, why));
    return false;
  }
  const auto take = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(entry(symbol));
  };
  const Version* (*tell_version)() = nullptr;
  int (*engine_create)(Handle*, int, std::size_t) = nullptr;
  take(tell_version, "dnnl_version");
  take(engine_create, "dnnl_engine_create");
  take(sgemm, "dnnl_sgemm");
  take(stream_create, "dnnl_stream_create");
  take(stream_wait, "dnnl_stream_wait");
  take(stream_destroy, "dnnl_stream_destroy");
  take(memory_create, "dnnl_memory_create");
  take(memory_set, "dnnl_memory_set_data_handle");
  take(memory_destroy, "dnnl_memory_destroy");
  take(description_equal, "dnnl_memory_desc_equal");
  take(description_size, "dnnl_memory_desc_get_size");
  take(query_description, "dnnl_primitive_desc_query_md");
  take(query, "dnnl_primitive_desc_query");
  take(reorder, "dnnl_reorder_primitive_desc_create");
  take(description_destroy, "dnnl_primitive_desc_destroy");
  take(primitive_create, "dnnl_primitive_create");
  take(primitive_execute, "dnnl_primitive_execute");
  take(primitive_destroy, "dnnl_primitive_destroy");
  take(attributes_create, "dnnl_primitive_attr_create");
  take(attributes_scratch, "dnnl_primitive_attr_set_scratchpad_mode");
  if (absent_.empty()) {
    const Version* found = tell_version();
    version_major = found->major;
    version = fmt::format("{}.{}.{}", found->major, found->minor, found->patch);
  }
  if (version_major == 2) {
    init_by_tag_ = entry("dnnl_memory_desc_init_by_tag");
    init_by_strides_ = entry("dnnl_memory_desc_init_by_strides");
    primitive_desc_create_ = entry("dnnl_primitive_desc_create");
    convolutions_ = {entry("dnnl_dilated_convolution_forward_desc_init"),
                     entry("dnnl_dilated_convolution_backward_data_desc_init"),
                     entry("dnnl_dilated_convolution_backward_weights_desc_init")};
  } else {
    create_with_tag_ = entry("dnnl_memory_desc_create_with_tag");
    create_with_strides_ = entry("dnnl_memory_desc_create_with_strides");
    memory_desc_destroy_ = entry("dnnl_memory_desc_destroy");
    convolutions_ = {entry("dnnl_convolution_forward_primitive_desc_create"),
                     entry("dnnl_convolution_backward_data_primitive_desc_create"),
                     entry("dnnl_convolution_backward_weights_primitive_desc_create")};
  }
  if (!absent_.empty()) {
    missing.push_back(fmt::format("{}: has no {}", name, absent_));
    return false;
  }
  file = name;
  if (engine_create(&engine_, kCpu, 0) == 0 && engine_) return true;
  missing.push_back(fmt::format("{}: has no engine for processors", name));
  engine_ = nullptr;
  return false;
}

Onednn::Description Onednn::any(const std::vector<std::int64_t>& sizes) const {
  Description made;
  const Dims dims = dims_of(sizes);
  const int count = static_cast<int>(sizes.size());
  if (version_major == 2) {
    made.room_.resize(kDescriptionRoom / sizeof(std::max_align_t));
    made.object_ = made.room_.data();
    using Init = int (*)(void*, int, const std::int64_t*, int, int);
    if (reinterpret_cast<Init>(init_by_tag_)(made.object_, count, dims.data(), kF32, kAnyLayout) != 0) return {};
    return made;
  }
  using Create = int (*)(void**, int, const std::int64_t*, int, int);
  if (reinterpret_cast<Create>(create_with_tag_)(&made.object_, count, dims.data(), kF32, kAnyLayout) != 0) return {};
  made.destroy_ = reinterpret_cast<int (*)(void*)>(memory_desc_destroy_);
  return made;
}

Onednn::Description Onednn::plain(const std::vector<std::int64_t>& sizes) const {
  Description made;
  const Dims dims = dims_of(sizes);
  const int count = static_cast<int>(sizes.size());
  Dims strides{};
  std::int64_t stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
  if (version_major == 2) {
    made.room_.resize(kDescriptionRoom / sizeof(std::max_align_t));
    made.object_ = made.room_.data();
    using Init = int (*)(void*, int, const std::int64_t*, int, const std::int64_t*);
    if (reinterpret_cast<Init>(init_by_strides_)(made.object_, count, dims.data(), kF32, strides.data()) != 0)
      return {};
    return made;
  }
  using Create = int (*)(void**, int, const std::int64_t*, int, const std::int64_t*);
  if (reinterpret_cast<Create>(create_with_strides_)(&made.object_, count, dims.data(), kF32, strides.data()) != 0)
    return {};
  made.destroy_ = reinterpret_cast<int (*)(void*)>(memory_desc_destroy_);
  return made;
}

Handle Onednn::convolution(Phase phase, const Convolution& z, Handle forward, Handle attributes) const {
  Handle made = nullptr;
  void* function = convolutions_[static_cast<std::size_t>(phase)];
  const void *x = z.source->get(), *w = z.weights->get(), *y = z.result->get();
  const std::int64_t *s = z.strides.data(), *d = z.dilations.data(), *b = z.before.data(), *e = z.behind.data();
  using Sizes = const std::int64_t*;
  if (version_major == 2) {
    std::vector<std::max_align_t> operation(kOperationRoom / sizeof(std::max_align_t));
    int failed = 1;
    if (phase == Phase::forward) {
      using Init =
          int (*)(void*, int, int, const void*, const void*, const void*, const void*, Sizes, Sizes, Sizes, Sizes);
      failed =
          reinterpret_cast<Init>(function)(operation.data(), kForwardTraining, kDirect, x, w, nullptr, y, s, d, b, e);
    } else if (phase == Phase::data) {
      using Init = int (*)(void*, int, const void*, const void*, const void*, Sizes, Sizes, Sizes, Sizes);
      failed = reinterpret_cast<Init>(function)(operation.data(), kDirect, x, w, y, s, d, b, e);
    } else {
      using Init = int (*)(void*, int, const void*, const void*, const void*, const void*, Sizes, Sizes, Sizes, Sizes);
      failed = reinterpret_cast<Init>(function)(operation.data(), kDirect, x, w, nullptr, y, s, d, b, e);
    }
    using Create = int (*)(Handle*, const void*, Handle, Handle, Handle);
    if (failed == 0)
      failed = reinterpret_cast<Create>(primitive_desc_create_)(&made, operation.data(), attributes, engine_, forward);
    return failed == 0 ? made : nullptr;
  }
  int failed = 1;
  if (phase == Phase::forward) {
    using Create = int (*)(Handle*, Handle, int, int, const void*, const void*, const void*, const void*, Sizes, Sizes,
                           Sizes, Sizes, Handle);
    failed = reinterpret_cast<Create>(function)(&made, engine_, kForwardTraining, kDirect, x, w, nullptr, y, s, d, b, e,
                                                attributes);
  } else if (phase == Phase::data) {
    using Create = int (*)(Handle*, Handle, int, const void*, const void*, const void*, Sizes, Sizes, Sizes, Sizes,
                           Handle, Handle);
    failed = reinterpret_cast<Create>(function)(&made, engine_, kDirect, x, w, y, s, d, b, e, forward, attributes);
  } else {
    using Create = int (*)(Handle*, Handle, int, const void*, const void*, const void*, const void*, Sizes, Sizes,
                           Sizes, Sizes, Handle, Handle);
    failed =
        reinterpret_cast<Create>(function)(&made, engine_, kDirect, x, w, nullptr, y, s, d, b, e, forward, attributes);
  }
  return failed == 0 ? made : nullptr;
}

}  // namespace turnpoint::probe
