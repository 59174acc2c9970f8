// SPDX-License-Identifier: Apache-2.0
// Expected<T>: the one return type for everything a user can cause (a broken file, a wrong option, a problem
// without solution). Bugs are assertions; exceptions never leave core/.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace turnpoint {

/// What kind of failure; the command line maps each to its exit code (resources/manual/command-line.md).
enum class ErrorCode {
  usage,       ///< wrong usage: unknown name, option or combination (exit 2)
  bad_input,   ///< a file or document is broken (exit 3)
  infeasible,  ///< nothing fits, or the problem has no solution (exit 4)
  device,      ///< a device, driver or helper process failed (exit 5)
  cancelled,   ///< stopped by the user (exit 130)
};

const char* to_string(ErrorCode code);

/// One clear sentence for the user: `where` (file and place, may be empty) and `what` (the reason).
struct Error {
  ErrorCode code = ErrorCode::bad_input;
  std::string what;   ///< the reason, a sentence without final full stop
  std::string where;  ///< file, and place in it: "gpt2.onnx: node 412 '/h.3/attn/Einsum'"
  std::string hint;   ///< what the user can do about it; may be empty
  /// Of cancelled work: whoever stopped it could expect its best so far, and `what` says why there is none.
  bool nothing_kept = false;

  /// "where: what (hint)", the form printed by the command line.
  std::string message() const;
};

inline Error usage_error(std::string what, std::string where = {}) {
  return {ErrorCode::usage, std::move(what), std::move(where), {}};
}
inline Error bad_input(std::string what, std::string where = {}) {
  return {ErrorCode::bad_input, std::move(what), std::move(where), {}};
}
inline Error cancelled_error() { return {ErrorCode::cancelled, "cancelled", {}, {}}; }

/// A value or an Error. Reading the value of a failed Expected is a bug (asserted).
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & {
    assert(has_value());
    return std::get<0>(state_);
  }
  const T& value() const& {
    assert(has_value());
    return std::get<0>(state_);
  }
  T&& value() && {
    assert(has_value());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    assert(!has_value());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value.
template <>
class [[nodiscard]] Expected<void> {
 public:
  Expected() = default;
  Expected(Error error) : error_(std::move(error)) {}
  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const {
    assert(error_);
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace turnpoint
