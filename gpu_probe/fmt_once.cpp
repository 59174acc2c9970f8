// SPDX-License-Identifier: Apache-2.0
// The distribution has fmt as a shared library only, and the probe starts with nothing but C's: what that library would
// hold is compiled into the probe, once, instead of as inline functions into each of its sources.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
FMT_BEGIN_DETAIL_NAMESPACE
template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template FMT_API thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template FMT_API char decimal_point_impl<char>(locale_ref);
template FMT_API void buffer<char>::append(const char*, const char*);
FMT_END_DETAIL_NAMESPACE
FMT_END_NAMESPACE
