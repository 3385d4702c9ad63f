#include "base/text.hpp"
#include "stages/device/nvjpeg.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <type_traits>

namespace leat::stages {
namespace {

struct symbol {
  const char* name;
  void (*found_at)(nvjpeg_functions& all, void* address);
};
template <auto member>
void found_at(nvjpeg_functions& all, void* address) {
  all.*member = reinterpret_cast<std::remove_reference_t<decltype(all.*member)>>(address);
}
constexpr symbol symbols[] = {{"nvjpegGetProperty", found_at<&nvjpeg_functions::get_property>},
                              {"nvjpegCreateEx", found_at<&nvjpeg_functions::create>},
                              {"nvjpegDestroy", found_at<&nvjpeg_functions::destroy>},
                              {"nvjpegJpegStateCreate", found_at<&nvjpeg_functions::create_state>},
                              {"nvjpegJpegStateDestroy", found_at<&nvjpeg_functions::destroy_state>},
                              {"nvjpegJpegStreamCreate", found_at<&nvjpeg_functions::create_parsed>},
                              {"nvjpegJpegStreamDestroy", found_at<&nvjpeg_functions::destroy_parsed>},
                              {"nvjpegJpegStreamParseHeader", found_at<&nvjpeg_functions::parse_header>},
                              {"nvjpegDecodeBatchedSupported", found_at<&nvjpeg_functions::is_supported>},
                              {"nvjpegDecodeBatchedInitialize", found_at<&nvjpeg_functions::begin_batches>},
                              {"nvjpegDecodeBatched", found_at<&nvjpeg_functions::decode_batch>}};

constexpr int major_min = 12;
constexpr int major_max = 13;

// Null, and `why_not` has one reason more.
void* open_library(const char* name, std::string& why_not) {
  void* const library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) str_append(why_not, why_not.empty() ? "" : "; ", ::dlerror());
  return library;
}

}  // namespace

std::optional<found_nvjpeg> find_nvjpeg(std::string& why_not) {
  constexpr const char* remedy =
      "; install it (of the CUDA toolkit: libnvjpeg), or name one by LEAT_NVJPEG=/path/to/libnvjpeg.so.13";
  found_nvjpeg found;
  void* library = nullptr;
  if (const char* const named = std::getenv("LEAT_NVJPEG"); named != nullptr && *named != '\0') {
    found.from = named;
    library = open_library(named, why_not);
  } else {
    for (const char* const name : {"libnvjpeg.so.13", "libnvjpeg.so.12"}) {
      found.from = name;
      library = open_library(name, why_not);
      if (library != nullptr) break;
    }
  }
  if (library == nullptr) {
    why_not = str_cat("nvJPEG's library was not found: ", why_not, remedy);
    return std::nullopt;
  }
  for (const symbol& each : symbols) {
    void* const address = ::dlsym(library, each.name);
    if (address == nullptr) {
      why_not = str_cat(found.from, " has no ", each.name, ": it is not nvJPEG of version 12 or 13", remedy);
      return std::nullopt;
    }
    each.found_at(found.functions, address);
  }
  int major = 0;
  if (found.functions.get_property(0, &major) != nvjpeg::success || major < major_min || major > major_max) {
    why_not = str_cat(found.from, " is nvJPEG of version ", major, ", of which leat knows nothing: it knows 12 and 13",
                      remedy);
    return std::nullopt;
  }
  why_not.clear();
  return found;
}

}  // namespace leat::stages
