// SPDX-License-Identifier: Apache-2.0
// Our own declarations of CUDA against the real headers, where those are installed; and the kernels through the real
// compiler, for every architecture that it knows.
#include <QTest>
#include <regex>

#include "gpu_probe/cuda/cublaslt.h"
#include "gpu_probe/cuda/cudnn.h"
#include "gpu_probe/cuda/driver.h"
#include "gpu_probe/cuda/kernel_source.h"
#include "gpu_probe/cuda/nccl.h"
#include "gpu_probe/cuda/nvml.h"
#include "gpu_probe/cuda/nvrtc.h"
#include "gpu_probe/step/cuda/kernel_source.h"

#if __has_include(<cuda.h>) && __has_include(<cublasLt.h>)
#define HAVE_CUDA_HEADERS 1
#include <cublasLt.h>
#include <cuda.h>
#endif
#if __has_include(<cudnn.h>) && defined(HAVE_CUDA_HEADERS)
#define HAVE_CUDNN_HEADERS 1
#include <cudnn.h>
#endif

#if __has_include(<nvml.h>)
#define HAVE_NVML_HEADERS 1
#include <nvml.h>
#endif
#if __has_include(<nccl.h>) && defined(HAVE_CUDA_HEADERS)
#define HAVE_NCCL_HEADERS 1
#include <nccl.h>
#endif

using namespace turnpoint::probe::cuda;

#ifdef HAVE_CUDA_HEADERS
static_assert(sizeof(Pointer) == sizeof(CUdeviceptr) && sizeof(Result) == sizeof(CUresult) &&
              sizeof(Device) == sizeof(CUdevice));
static_assert(int(kMultiprocessors) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
              int(kClockKilohertz) == CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
static_assert(int(kPciBus) == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID && int(kPciDevice) == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
static_assert(int(kPciDomain) == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID &&
              int(kL2Bytes) == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(int(kMemoryClockKilohertz) == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE &&
              int(kMemoryBusBits) == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
static_assert(int(kComputeMajor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              int(kComputeMinor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(sizeof(LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(LtHeuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(LtHeuristic, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(kReal32 == CUDA_R_32F && kRealBf16 == CUDA_R_16BF && kCompute32 == CUBLAS_COMPUTE_32F &&
              kComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(kPlainOperand == CUBLAS_OP_N && kTransposedOperand == CUBLAS_OP_T);
static_assert(kDescTransposeA == CUBLASLT_MATMUL_DESC_TRANSA && kDescTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kDescEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE && kDescBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER &&
              kEpilogueBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(kLayoutBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              kLayoutBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kPreferenceWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              kPreferenceAlignment == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              kPreferenceAlignment + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#endif
#ifdef HAVE_CUDNN_HEADERS
static_assert(sizeof(CudnnPerformance) == sizeof(cudnnConvolutionFwdAlgoPerf_t) &&
              sizeof(CudnnPerformance) == sizeof(cudnnConvolutionBwdDataAlgoPerf_t));
static_assert(offsetof(CudnnPerformance, memory) == offsetof(cudnnConvolutionFwdAlgoPerf_t, memory));
static_assert(offsetof(CudnnPerformance, math) == offsetof(cudnnConvolutionBwdFilterAlgoPerf_t, mathType));
static_assert(kCudnnFloat == CUDNN_DATA_FLOAT && kCudnnBf16 == CUDNN_DATA_BFLOAT16 && kCudnnNchw == CUDNN_TENSOR_NCHW &&
              kCudnnNhwc == CUDNN_TENSOR_NHWC);
static_assert(kCudnnCrossCorrelation == CUDNN_CROSS_CORRELATION && kCudnnDefaultMath == CUDNN_DEFAULT_MATH &&
              kCudnnTensorMath == CUDNN_TENSOR_OP_MATH && kCudnnFmaMath == CUDNN_FMA_MATH);
#endif
#ifdef HAVE_NCCL_HEADERS
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId) && alignof(NcclId) == alignof(ncclUniqueId));
static_assert(kNcclFloat32 == ncclFloat32 && kNcclBfloat16 == ncclBfloat16 && kNcclSum == ncclSum);
static_assert(kNcclSystemError == ncclSystemError && kNcclInvalidUsage == ncclInvalidUsage &&
              kNcclRemoteError == ncclRemoteError && kNcclInProgress == ncclInProgress);

/// The functions of nccl.h with enumerations and handles as what they are in memory; their shapes are compared.
template <class T>
struct PlainOf {
  using type = T;
};
template <class T>
requires std::is_enum_v<T>
struct PlainOf<T> {
  using type = int;
};
template <>
struct PlainOf<ncclUniqueId> {
  using type = NcclId;
};
template <>
struct PlainOf<ncclUniqueId*> {
  using type = NcclId*;
};
template <>
struct PlainOf<ncclComm_t> {
  using type = NcclCommunicator;
};
template <>
struct PlainOf<ncclComm_t*> {
  using type = NcclCommunicator*;
};
template <>
struct PlainOf<ncclResult_t*> {
  using type = int*;
};
template <>
struct PlainOf<cudaStream_t> {
  using type = Stream;
};
template <class R, class... A>
auto plain_nccl(R (*)(A...)) -> typename PlainOf<R>::type (*)(typename PlainOf<A>::type...);
#define SAME_AS_NCCL(member, function) \
  static_assert(std::is_same_v<decltype(Nccl::member), decltype(plain_nccl(&function))>)
SAME_AS_NCCL(get_version, ncclGetVersion);
SAME_AS_NCCL(get_id, ncclGetUniqueId);
SAME_AS_NCCL(join, ncclCommInitRank);
SAME_AS_NCCL(abort, ncclCommAbort);
SAME_AS_NCCL(destroy, ncclCommDestroy);
SAME_AS_NCCL(asynchronous_error, ncclCommGetAsyncError);
SAME_AS_NCCL(error_text, ncclGetErrorString);
SAME_AS_NCCL(last_error, ncclGetLastError);
SAME_AS_NCCL(group_start, ncclGroupStart);
SAME_AS_NCCL(group_end, ncclGroupEnd);
SAME_AS_NCCL(all_reduce, ncclAllReduce);
SAME_AS_NCCL(all_gather, ncclAllGather);
SAME_AS_NCCL(reduce_scatter, ncclReduceScatter);
SAME_AS_NCCL(broadcast, ncclBroadcast);
SAME_AS_NCCL(send, ncclSend);
SAME_AS_NCCL(receive, ncclRecv);
#endif

#ifdef HAVE_NVML_HEADERS
static_assert(sizeof(NvmlPci) == sizeof(nvmlPciInfo_t) && offsetof(NvmlPci, bus_id) == offsetof(nvmlPciInfo_t, busId) &&
              offsetof(NvmlPci, domain) == offsetof(nvmlPciInfo_t, domain) &&
              offsetof(NvmlPci, bus) == offsetof(nvmlPciInfo_t, bus) &&
              offsetof(NvmlPci, device) == offsetof(nvmlPciInfo_t, device));
static_assert(sizeof(NvmlField) == sizeof(nvmlFieldValue_t) &&
              offsetof(NvmlField, type) == offsetof(nvmlFieldValue_t, valueType) &&
              offsetof(NvmlField, result) == offsetof(nvmlFieldValue_t, nvmlReturn) &&
              offsetof(NvmlField, value) == offsetof(nvmlFieldValue_t, value));
static_assert(kNvmlUnsigned == NVML_VALUE_TYPE_UNSIGNED_INT &&
              kNvmlFieldNvlinkSpeed == NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON &&
              kNvmlScopeNode == NVML_AFFINITY_SCOPE_NODE);
static_assert(kNvmlSensorGpu == NVML_TEMPERATURE_GPU && kNvmlClockMultiprocessor == NVML_CLOCK_SM &&
              kNvmlClockMemory == NVML_CLOCK_MEM);
static_assert(kNvmlEndGpu == NVML_NVLINK_DEVICE_TYPE_GPU && kNvmlEndNpu == NVML_NVLINK_DEVICE_TYPE_IBMNPU &&
              kNvmlEndSwitch == NVML_NVLINK_DEVICE_TYPE_SWITCH && kNvmlEndUnknown == NVML_NVLINK_DEVICE_TYPE_UNKNOWN);
static_assert(kNvmlPeerRead == NVML_P2P_CAPS_INDEX_READ && kNvmlPeerWrite == NVML_P2P_CAPS_INDEX_WRITE &&
              kNvmlPeerNvlink == NVML_P2P_CAPS_INDEX_NVLINK);
static_assert(kNvmlInternal == NVML_TOPOLOGY_INTERNAL && kNvmlSingle == NVML_TOPOLOGY_SINGLE &&
              kNvmlMultiple == NVML_TOPOLOGY_MULTIPLE && kNvmlHostbridge == NVML_TOPOLOGY_HOSTBRIDGE &&
              kNvmlNode == NVML_TOPOLOGY_NODE && kNvmlSystem == NVML_TOPOLOGY_SYSTEM);
static_assert(NVML_NVLINK_MAX_LINKS <= kNvmlMostLinks && NVML_SUCCESS == 0 && NVML_FEATURE_ENABLED == 1 &&
              NVML_P2P_STATUS_OK == 0 && NVML_P2P_STATUS_NOT_SUPPORTED == 5);

/// The functions of nvml.h, compared as those of nccl.h are.
template <class T>
struct PlainNvml {
  using type = T;
};
template <class T>
requires std::is_enum_v<T>
struct PlainNvml<T> {
  using type = int;
};
template <class T>
requires std::is_enum_v<T>
struct PlainNvml<T*> {
  using type = int*;
};
template <>
struct PlainNvml<nvmlDevice_t> {
  using type = NvmlDevice;
};
template <>
struct PlainNvml<nvmlDevice_t*> {
  using type = NvmlDevice*;
};
template <>
struct PlainNvml<nvmlPciInfo_t*> {
  using type = NvmlPci*;
};
template <>
struct PlainNvml<nvmlFieldValue_t*> {
  using type = NvmlField*;
};
template <class R, class... A>
auto plain_nvml(R (*)(A...)) -> typename PlainNvml<R>::type (*)(typename PlainNvml<A>::type...);
#define SAME_AS_NVML(member, function) \
  static_assert(std::is_same_v<decltype(NvmlFunctions::member), decltype(plain_nvml(&function))>)
SAME_AS_NVML(init, nvmlInit_v2);
SAME_AS_NVML(shutdown, nvmlShutdown);
SAME_AS_NVML(driver, nvmlSystemGetDriverVersion);
SAME_AS_NVML(by_pci, nvmlDeviceGetHandleByPciBusId_v2);
SAME_AS_NVML(clock, nvmlDeviceGetClockInfo);
SAME_AS_NVML(most_clock, nvmlDeviceGetMaxClockInfo);
SAME_AS_NVML(temperature, nvmlDeviceGetTemperature);
SAME_AS_NVML(power, nvmlDeviceGetPowerUsage);
SAME_AS_NVML(reasons, nvmlDeviceGetCurrentClocksThrottleReasons);
SAME_AS_NVML(pcie_generation, nvmlDeviceGetCurrPcieLinkGeneration);
SAME_AS_NVML(pcie_width, nvmlDeviceGetCurrPcieLinkWidth);
SAME_AS_NVML(link_state, nvmlDeviceGetNvLinkState);
SAME_AS_NVML(link_version, nvmlDeviceGetNvLinkVersion);
SAME_AS_NVML(error_text, nvmlErrorString);
SAME_AS_NVML(link_end, nvmlDeviceGetNvLinkRemoteDeviceType);
SAME_AS_NVML(link_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2);
SAME_AS_NVML(ancestor, nvmlDeviceGetTopologyCommonAncestor);
SAME_AS_NVML(peer, nvmlDeviceGetP2PStatus);
SAME_AS_NVML(memory_affinity, nvmlDeviceGetMemoryAffinity);
SAME_AS_NVML(core_affinity, nvmlDeviceGetCpuAffinity);
SAME_AS_NVML(fields, nvmlDeviceGetFieldValues);
SAME_AS_NVML(device_count, nvmlDeviceGetCount_v2);
#endif

class CudaDeclarationsTest : public QObject {
  Q_OBJECT

 private slots:
  void headers_agree() {
#ifdef HAVE_CUDA_HEADERS
    QVERIFY2(CUDA_VERSION >= 12000, "the checks above were compiled against these headers");
#else
    QSKIP("no CUDA headers here");
#endif
  }

  void nvml_headers_agree() {
#ifdef HAVE_NVML_HEADERS
    for (const auto& [code, version] : {std::pair(NVML_NVLINK_VERSION_1_0, "1.0"),
                                        {NVML_NVLINK_VERSION_2_0, "2.0"},
                                        {NVML_NVLINK_VERSION_2_2, "2.2"},
                                        {NVML_NVLINK_VERSION_3_0, "3.0"},
                                        {NVML_NVLINK_VERSION_3_1, "3.1"},
                                        {NVML_NVLINK_VERSION_4_0, "4.0"},
                                        { NVML_NVLINK_VERSION_5_0,
                                          "5.0" }})
      QCOMPARE(nvlink_version(code), std::string(version));
    QVERIFY(nvlink_version(NVML_NVLINK_VERSION_INVALID).empty());
#else
    QSKIP("no header of NVML here");
#endif
  }

  void nccl_is_loaded() {
    Nccl nccl;
    if (const auto opened = nccl.open(); !opened) QSKIP(opened.error().what.c_str());
    QVERIFY2(nccl.version().starts_with("2."), nccl.version().c_str());
    // Which is 20000 + 100 x minor + patch from 2.9 on; an error has words.
    QVERIFY(nccl.failure(kNcclSystemError, "trying").what.find("trying: NCCL error 2 (") == 0);
  }

  void kernels_compile_data() {
    QTest::addColumn<QString>("architecture");
    for (const char* name : {"sm_80", "sm_90"}) QTest::newRow(name) << name;
  }
  void kernels_compile() {
    const Nvrtc compiler;
    if (!compiler.loaded().usable()) QSKIP("no run-time compiler of CUDA here");
    QFETCH(QString, architecture);
    const auto code = compiler.compile(kernel_source(), architecture.toStdString());
    QVERIFY2(code.has_value(), code ? "" : code.error().message().c_str());
    for (const char* name : {"softmax_f32", "softmax_warp_bf16", "column_sum_bf16", "adam_f32", "spin", "nothing"})
      QVERIFY2(code->find(std::string(".text.") + name) != std::string::npos, name);
  }

  void kernels_of_steps_compile_data() {
    QTest::addColumn<QString>("architecture");
    QTest::addColumn<bool>("halves");
    QTest::newRow("sm_90") << "sm_90" << false;
    QTest::newRow("sm_90, bf16") << "sm_90" << true;
  }
  void kernels_of_steps_compile() {
    const Nvrtc compiler;
    if (!compiler.loaded().usable()) QSKIP("no run-time compiler of CUDA here");
    QFETCH(QString, architecture);
    QFETCH(bool, halves);
    const std::string source = turnpoint::step::in_cuda::step_kernels(halves ? turnpoint::ProbePrecision::bf16
                                                                             : turnpoint::ProbePrecision::fp32);
    const auto code = compiler.compile(source, architecture.toStdString());
    QVERIFY2(code.has_value(), code ? "" : code.error().message().c_str());
    const std::regex head(R"(__global__\s+void\s+(\w+))");
    int kernels = 0;
    for (std::sregex_iterator it(source.begin(), source.end(), head), end; it != end; ++it, ++kernels)
      QVERIFY2(code->find(".text." + (*it)[1].str()) != std::string::npos, (*it)[1].str().c_str());
    QVERIFY(kernels > 25);
  }

  void a_wrong_kernel_is_explained() {
    const Nvrtc compiler;
    if (!compiler.loaded().usable()) QSKIP("no run-time compiler of CUDA here");
    const auto code = compiler.compile("int x = ;", "sm_90");
    QVERIFY(!code.has_value());
    QVERIFY2(code.error().what.find("turnpoint_kernels.cu(1)") != std::string::npos, code.error().what.c_str());
  }
};

QTEST_APPLESS_MAIN(CudaDeclarationsTest)
#include "cuda_declarations_test.moc"
