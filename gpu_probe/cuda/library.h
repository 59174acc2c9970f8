// SPDX-License-Identifier: Apache-2.0
// A shared library that may or may not be there.
#pragma once

#include <initializer_list>
#include <string>

namespace turnpoint::probe {

/// Never unloaded: CUDA's libraries do not survive that.
class Library {
 public:
  /// The first of these names that the loader finds.
  bool open(std::initializer_list<const char*> names);
  /// Fills `function`; once a symbol is missing the library counts as unusable, with problem() naming it.
  template <class Function>
  bool load(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(find(symbol));
    return function != nullptr;
  }
  /// The same for what one can do without: a missing symbol leaves null and the library usable.
  template <class Function>
  void load_if_there(Function& function, const char* symbol) {
    const std::string before = problem_;
    load(function, symbol);
    problem_ = before;
  }
  bool usable() const { return handle_ && problem_.empty(); }
  const std::string& problem() const { return problem_; }  ///< "libcudnn.so.9: cannot open ..."
  const std::string& name() const { return name_; }

 private:
  void* find(const char* symbol);
  void* handle_ = nullptr;
  std::string name_, problem_;
};

}  // namespace turnpoint::probe
