// SPDX-License-Identifier: Apache-2.0
// One reader per kind of measured log. Each takes valid UTF-8 without terminal colours, or a parsed JSON document.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/hardware/logs/line_reader.h"
#include "core/hardware/logs/measured_log.h"

namespace turnpoint::logs {

/// True for a header or a row of the nccl-tests table, whatever a launcher put before it.
bool is_nccl_tests_line(std::string_view line);
Expected<MeasuredLog> read_nccl_tests(LineReader& lines, const std::string& path);
Expected<MeasuredLog> read_nccl_tests_json(const nlohmann::json& document, const std::string& path);

// Logs told by one of their lines.
bool is_osu_line(std::string_view line);
Expected<MeasuredLog> read_osu(LineReader& lines, const std::string& path);
bool is_intel_mpi_line(std::string_view line);
Expected<MeasuredLog> read_intel_mpi(LineReader& lines, const std::string& path);
bool is_perftest_line(std::string_view line);
Expected<MeasuredLog> read_perftest(LineReader& lines, const std::string& path);
bool is_rocm_topology_line(std::string_view line);
Expected<MeasuredLog> read_rocm_topology(LineReader& lines, const std::string& path);
bool is_param_line(std::string_view line);
Expected<MeasuredLog> read_param(LineReader& lines, const std::string& path);
bool is_nsys_line(std::string_view line);
Expected<MeasuredLog> read_nsys(LineReader& lines, const std::string& path);

Expected<MeasuredLog> read_nvbandwidth(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_nvbandwidth_json(const nlohmann::json& document, const std::string& path);

/// True if a heading of devices is followed by a row of links, maybe after a prompt or other text.
bool looks_like_smi_topology(std::string_view text);
Expected<MeasuredLog> read_smi_topology(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_nccl_topology(std::string_view text, const std::string& path);

/// True if a JSON text begins like a trace of events.
bool looks_like_kineto(std::string_view start);
Expected<MeasuredLog> read_kineto(ByteSource& source, const std::string& path);

/// True if a JSON text, or lines of it, names metrics of superbench that are read.
bool looks_like_superbench(std::string_view start);
Expected<MeasuredLog> read_superbench(std::string_view text, const std::string& path);

bool looks_like_galvatron(const nlohmann::json& document);
Expected<MeasuredLog> read_galvatron(const nlohmann::json& document, const std::string& path);
bool looks_like_nnscaler(const nlohmann::json& document);
Expected<MeasuredLog> read_nnscaler(const nlohmann::json& document, const std::string& path);
Expected<MeasuredLog> read_gpu_specs(const nlohmann::json& document, const std::string& path);

Expected<MeasuredLog> read_vidur_collectives(LineReader& lines, const std::string& path);
/// `heading`: the table's first line, which names its operators.
Expected<MeasuredLog> read_vidur_compute(LineReader& lines, std::string_view heading, const std::string& path);
Expected<MeasuredLog> read_aiconfigurator_nccl(LineReader& lines, const std::string& path);
Expected<MeasuredLog> read_aiconfigurator_gemm(LineReader& lines, const std::string& path);
Expected<MeasuredLog> read_deepbench(LineReader& lines, const std::string& path);

Expected<MeasuredLog> read_aceso_operators(LineReader& lines, const std::string& path);
Expected<MeasuredLog> read_aceso_collectives(LineReader& lines, const std::string& path);
Expected<MeasuredLog> read_aceso_p2p(std::string_view text, const std::string& path);

/// The collective that an nccl-tests program or a file name speaks of; nullopt: none, or one without a place in a
/// profile (gather, scatter, reduce).
std::optional<Collective> collective_in_name(std::string_view name);

}  // namespace turnpoint::logs
