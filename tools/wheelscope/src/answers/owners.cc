// Tells by its name who should have a missing library or symbol.
#include "answers/owners.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "facts/facts.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

using Owners = std::map<std::string_view, std::string_view>;  // of symbols

Owners definitions(const Item& item) {
  Owners owners;
  for (const auto& library : item.facts.libraries) {
    for (const auto& symbol : library.symbols) {
      if (symbol.defined) owners.try_emplace(symbol.name, library.path);
    }
  }
  return owners;
}

std::string owner_of(const SymbolFact& symbol, const Owners& inside) {
  if (symbol.defined) return {};
  if (!symbol.library.empty()) return symbol.library;
  if (auto found = inside.find(symbol.name); found != inside.end())
    return std::string(found->second);
  if (auto shim = torch_shims().find(symbol.name); shim != torch_shims().end())
    return std::string(shim->second.library);
  if (is_python_symbol(symbol.name)) return "python";
  return {};
}

// Libraries that packages often use, by the namespace of their C++ functions ("arrow::"), or by
// what the names of their C functions begin with.
constexpr std::pair<std::string_view, const char*> used_libraries[] = {
    {"arrow::", "Apache Arrow (libarrow)"},
    {"parquet::", "Apache Arrow (libparquet)"},
    {"cv::", "OpenCV"},
    {"google::", "protobuf, glog or gflags"},
    {"grpc::", "gRPC"},
    {"absl::", "Abseil"},
    {"boost::", "Boost"},
    {"tbb::", "oneTBB (libtbb)"},
    {"tensorflow::", "TensorFlow"},
    {"tsl::", "TensorFlow"},
    {"nvinfer1::", "TensorRT"},
    {"cudnn::", "cuDNN"},
    {"faiss::", "faiss"},
    {"onnx::", "ONNX"},
    {"fmt::", "fmt (libfmt)"},
    {"spdlog::", "spdlog"},
    {"rocksdb::", "RocksDB"},
    {"llvm::", "LLVM"},
    {"mlir::", "LLVM"},
    {"LLVM", "LLVM"},
    {"MPI_", "MPI"},
    {"ompi_", "Open MPI"},
    {"OMPI_", "Open MPI"},
    {"H5", "HDF5"},
    {"sqlite3_", "SQLite"},
    {"curl_", "libcurl"},
    {"XML_", "expat"},
    {"xmlParse", "libxml2"},
    {"exslt", "libexslt (of libxslt)"},
    {"xslt", "libxslt"},
    {"mysql_", "libmysqlclient"},
    {"PQconn", "libpq (PostgreSQL)"},
    {"png_", "libpng"},
    {"jpeg_", "libjpeg"},
    {"TIFF", "libtiff"},
    {"BZ2_", "bzip2"},
    {"lzma_", "liblzma"},
    {"ZSTD_", "zstd"},
    {"inflate", "zlib"},
    {"deflate", "zlib"},
    {"FT_", "FreeType"},
    {"ffi_", "libffi"},
    {"OGR_", "GDAL"},
    {"GDAL", "GDAL"},
    {"proj_", "PROJ"},
    {"GEOS", "GEOS"},
    {"avcodec_", "FFmpeg"},
    {"avformat_", "FFmpeg"},
    {"av_", "FFmpeg"},
    {"sws_", "FFmpeg"},
    {"ibv_", "libibverbs"},
    {"ucp_", "UCX"},
    {"fftw", "FFTW"},
    {"gsl_", "GSL"},
    {"mysql_", "MySQL's client"},
    {"Tcl_", "Tcl"},
    {"Tk_", "Tk"},
    {"libusb_", "libusb"},
    {"snd_pcm_", "ALSA (libasound)"},
    {"Pa_", "PortAudio"},
    {"SDL_", "SDL"},
    {"xcb_", "libxcb"},
    {"cairo_", "cairo"},
    {"pango_", "Pango"},
    {"g_object_", "GLib"},
    {"g_type_", "GLib"},
    {"gst_", "GStreamer"},
    {"gtk_", "GTK"},
    {"udev_", "libudev"},
    {"dbus_", "D-Bus (libdbus-1)"},
    {"rd_kafka_", "librdkafka"},
    {"zmq_", "ZeroMQ (libzmq)"},
    {"sodium_", "libsodium"},
    {"secp256k1_", "libsecp256k1"},
    {"__gmp", "GMP"},
    {"mpfr_", "MPFR"},
    {"nc_inq", "NetCDF"},
    {"nc_open", "NetCDF"},
    {"sf_open", "libsndfile"},
    {"opus_", "Opus"},
    {"FLAC__", "FLAC"},
    {"magic_open", "libmagic"},
    {"yaml_parser_", "libyaml"},
    {"archive_read_", "libarchive"},
    {"git_", "libgit2"},
    {"libssh2_", "libssh2"},
    {"krb5_", "Kerberos (libkrb5)"},
    {"gss_", "Kerberos (libgssapi)"},
    {"ldap_", "OpenLDAP"},
    {"SQLAllocHandle", "unixODBC"},
    {"clCreate", "OpenCL (libOpenCL)"},
    {"clGet", "OpenCL (libOpenCL)"},
    {"hwloc_", "hwloc"},
    {"lua_", "Lua"},
    {"luaL_", "Lua"},
    {"numa_", "libnuma"},
    {"PAPI_", "PAPI"},
    {"PMIx_", "PMIx"},
    {"slurm_", "Slurm"},
    {"igraph_", "igraph"},
    {"spg_", "spglib"},
    {"spgat_", "spglib"},
    {"METIS_", "METIS"},
    {"umfpack_", "SuiteSparse"},
    {"klu_", "SuiteSparse"},
    {"cholmod_", "SuiteSparse"},
    {"Pm_", "PortMidi"},
    {"pcre2_", "PCRE2"},
    {"pcre_", "PCRE"},
    {"rtcNew", "Embree"},
    {"ggml_", "ggml (llama.cpp)"},
    {"llama_", "llama.cpp"},
    {"ucnv_", "ICU"},
    {"re2::", "RE2"},
    {"leveldb::", "LevelDB"},
    {"snappy::", "snappy"},
    {"Aws::", "the AWS SDK for C++"},
    {"folly::", "folly"},
    {"QString::", "Qt"},
    {"QObject::", "Qt"},
    {"QMetaObject::", "Qt"},
    {"QWidget::", "Qt"},
    {"QByteArray::", "Qt"},
    {"onnxruntime::", "ONNX Runtime"},
    {"caffe::", "Caffe"},
    {"paddle::", "PaddlePaddle"},
    {"pcl::", "PCL"},
    {"ros::", "ROS"},
    {"rclcpp::", "ROS 2"},
    {"osg::", "OpenSceneGraph"},
    {"itk::", "ITK"},
    {"vtkObject", "VTK"},
    {"vtkPoly", "VTK"},
    {"ompl::", "OMPL"},
    {"YAML::", "yaml-cpp"},
    {"Json::", "jsoncpp"},
    {"Ogre::", "OGRE"},
    {"dnnl::", "oneDNN"},
    {"dnnl_", "oneDNN"},
    {"mkldnn_", "oneDNN"},
    {"gloo::", "Gloo"},
    {"hipblas", "ROCm (libhipblas)"},
    {"rocblas_", "ROCm (librocblas)"},
    {"miopen", "ROCm (libMIOpen)"},
    {"rccl", "ROCm (librccl)"},
    {"hsa_", "ROCm (libhsa-runtime64)"},
    {"ucs_", "UCX"},
    {"uct_", "UCX"},
    {"fi_", "libfabric"},
    {"shmem_", "OpenSHMEM"},
    {"PQ", "libpq"}};

// Returns arrow:: for _ZN5arrowlsERSoRKNS_10Decimal256E, and a name that is not mangled unchanged.
std::string outermost(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return std::string(symbol);
  const auto digits = symbol.find_first_not_of("TVISNKR", 2);
  const auto end = std::min(symbol.find_first_not_of("0123456789", digits), symbol.size());
  if (digits >= end || end - digits > 2 || symbol[digits - 1] < 'K' || symbol[digits - 1] > 'N')
    return {};
  return std::string(symbol.substr(end, std::stoul(std::string(symbol.substr(digits))))) + "::";
}

}  // namespace

std::string library_by_name(const std::string& symbol) {
  const auto name = outermost(symbol);
  const auto used = std::ranges::find_if(
      used_libraries, [&](const auto& one) { return name.starts_with(one.first); });
  return used == std::end(used_libraries) ? "" : used->second;
}

bool is_driver_library(std::string_view name) {
  return name == "libcuda.so.1" || name == "libnvidia-ml.so.1" || name == "libnvcuvid.so.1" ||
         name == "libnvidia-encode.so.1" || name == "libnvoptix.so.1";
}

// cuMemAlloc, but not cudaMalloc or cublasCreate; nvmlInit; cuvidCreateDecoder; NvEncodeAPI...
bool is_driver_symbol(std::string_view name) {
  const bool capital = name.size() > 2 && name[2] >= 'A' && name[2] <= 'Z';
  return (name.starts_with("cu") && capital) || name.starts_with("nvml") ||
         name.starts_with("cuvid") || name.starts_with("NvEncode");
}

bool is_musl(std::string_view name) {
  return name.starts_with("libc.musl-") || name.starts_with("ld-musl-");
}

bool is_platform_library(const std::string& name) {
  return platform_table("manylinux").libraries.contains(name) || name.starts_with("ld-linux") ||
         name.starts_with("ld64.so") || is_musl(name);
}

bool is_cxx_runtime_symbol(std::string_view name) {
  static constexpr std::string_view starts[] = {"_ZSt",
                                                "_ZNSt",
                                                "_ZNKSt",
                                                "_ZTISt",
                                                "_ZTVSt",
                                                "_ZTSSt",
                                                "_ZTINSt",
                                                "_ZTVNSt",
                                                "_ZTSNSt",
                                                "_ZGVNSt",
                                                "_ZTTNSt",
                                                "_Zna",
                                                "_Znw",
                                                "_Zda",
                                                "_Zdl",
                                                "__cxa_",
                                                "__gxx_",
                                                "__dynamic_cast",
                                                "_ZTVN10__cxxabiv1",
                                                "_ZN10__cxxabiv1",
                                                "_ZN9__gnu_cxx",
                                                "_ZTI",
                                                "_ZTS"};
  for (const auto start : starts) {
    if (!name.starts_with(start)) continue;
    // _ZTIi: the type information of a basic type.
    return start.size() > 4 || name.size() <= 6 || (start != "_ZTI" && start != "_ZTS");
  }
  return false;
}

bool is_torch_library(std::string_view name) {
  return name.starts_with("libtorch") || name.starts_with("libc10") ||
         name.starts_with("libshm.so") || name.starts_with("libcaffe2_");
}

bool is_known_library(const std::string& name) {
  return is_platform_library(name) || is_driver_library(name) || cuda_libraries().contains(name) ||
         is_torch_library(name) || name.starts_with("libpython");
}

std::string torch_library_of(const std::string& name) {
  if (auto shim = torch_shims().find(name); shim != torch_shims().end())
    return std::string(shim->second.library);
  auto mentions = [&](std::string_view mangled) {  // NK: a const member
    return name.starts_with("_Z") &&
           (name.find(mangled) != name.npos ||
            name.find("NK" + std::string(mangled.substr(1))) != name.npos);
  };
  if (mentions("N3c104cuda")) return "libc10_cuda.so";
  if (mentions("N2at4cuda")) return "libtorch_cuda.so";
  if (name.starts_with("THP") || mentions("N5torch8autogradL") || mentions("THPVariable"))
    return "libtorch_python.so";
  if (name.starts_with("_ZN3c10") || name.starts_with("_ZNK3c10") ||
      name.starts_with("_ZTIN3c10") || name.starts_with("_ZTVN3c10"))
    return "libc10.so";
  if (mentions("N2at") || mentions("N5torch") || mentions("N3c10") ||
      name.starts_with("aoti_torch_") || name.starts_with("torch_"))
    return "libtorch_cpu.so";
  return {};
}

std::vector<std::string> cuda_distributions_of(const std::string& library,
                                               const std::string& cuda) {
  std::vector<std::string> names;
  const auto major = major_of(cuda);
  const auto [first, last] = cuda_libraries().equal_range(library);
  for (auto entry = first; entry != last; ++entry) {
    if (entry->second.cuda == major) return {std::string(entry->second.distribution)};
    names.emplace_back(entry->second.distribution);
  }
  return names;
}

std::string library_family(const std::string& path) {
  auto family = path;
  for (const std::string_view variant : {"cpu", "cuda"}) {
    if (const auto at = family.rfind(variant); at != family.npos && at > family.rfind('/'))
      family.erase(at, variant.size());
  }
  const auto name = family.rfind('/') + 1;
  family.erase(std::remove_if(family.begin() + static_cast<std::ptrdiff_t>(name), family.end(),
                              [](char c) { return is_digit(c); }),
               family.end());
  return family;
}

// Goes by names alone, without the loader's rules.
void for_each_symbol(
    const Item& item,
    const std::function<void(const LibraryFacts&, const SymbolFact&, const std::string&)>& use) {
  const auto inside = definitions(item);
  for (const auto& library : item.facts.libraries) {
    std::vector<const SymbolFact*> symbols;
    symbols.reserve(library.symbols.size());
    for (const auto& symbol : library.symbols) symbols.push_back(&symbol);
    std::ranges::sort(symbols, {}, [](const SymbolFact* one) {
      return std::tie(one->defined, one->name, one->version);
    });
    for (const auto* symbol : symbols) use(library, *symbol, owner_of(*symbol, inside));
  }
}

}  // namespace wheelscope
