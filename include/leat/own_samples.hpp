// Datasets of your own: of extents, functions, coroutines and tensors.
#pragma once

#include <leat/compiler.hpp>
#include <leat/extent.hpp>
#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// Include <boost/asio/awaitable.hpp> to call from_coroutine().
namespace boost::asio {
class any_io_executor;
template <typename T, typename Executor>
class awaitable;
}  // namespace boost::asio

#pragma GCC visibility push(default)
namespace leat {

/// A dataset of your own: where the bytes of each sample lie in files.
///   fields    one extent for each sample: `file` is an index into `files`, `source` is 0, decoded_bytes 0 means "as
///             stored". An extent of 0 bytes at offset extent_list::missing means that this sample lacks the field
///   codec     of a field that is compressed sample by sample: "gzip", "zlib" or "deflate" (without a header). Then
///             each extent needs decoded_bytes, and a sample that expands to another size is corrupt. Empty (default):
///             as stored
///   names     a name for each sample. Empty (default): file and offset are the name
struct extent_list {
  static constexpr std::uint64_t missing = ~std::uint64_t{0};
  struct field {
    std::string name;
    std::vector<extent> extents;
    std::string codec = {};
  };
  std::vector<std::string> files = {};
  std::vector<field> fields = {};
  std::vector<column_values> columns = {};
  std::vector<std::string> classes = {};
  std::vector<std::string> names = {};
};

///   throws   error{errc::usage} lists of different lengths; error{errc::not_found} and error{errc::format} a file that
///            is not there or ends before an extent does, with file, sample and offset; error{errc::unsupported} an
///            extent that would have to be decompressed, without a codec, and a codec that leat does not have
[[nodiscard]] dataset from_extents(extent_list table);

/// The samples of a function.
///   field       the name of their one field
///   bytes_max   the most bytes that one call returns; must be set. The loader's budget is charged with it for each
///               sample under way
struct function_options {
  std::string field = "bytes";
  std::uint64_t bytes_max = 0;
  std::vector<column_values> columns = {};              ///< numbers that the dataset keeps, such as labels
  std::vector<std::string> classes = {};                ///< class names, by the numbers of the column "cls"
  std::function<std::string(std::uint64_t)> name = {};  ///< names a sample. Empty (default): "sample 17"
  /// A name for what the function makes, "fractals, v2", which you change whenever it gives other bytes. Without it a
  /// run can neither be saved nor resumed.
  std::string described_as = {};
};

/// Samples that a function makes, as a map-style Dataset. `make(i)` runs on the decode threads, several at a time: it
/// must be thread-safe, and give the same bytes for the same i. If it throws, the sample is corrupt
/// (loader_options::on_corrupt).
[[nodiscard]] dataset from_function(std::uint64_t samples, std::function<std::vector<std::byte>(std::uint64_t)> make,
                                    function_options options);

/// A field of samples that a function makes.
struct function_field {
  std::string name;
  std::uint64_t bytes_max = 0;  ///< as function_options::bytes_max
};

/// Samples of several fields: make(i) gives the bytes of each field of sample i, in their order. A decode thread calls
/// it once for the fields of a sample, and again if other samples came between. function_options::field and bytes_max
/// are not used.
///   throws   error{errc::usage} no field, two of one name, bytes_max of 0
using function_of_fields = std::function<std::vector<std::vector<std::byte>>(std::uint64_t)>;
[[nodiscard]] dataset from_function(std::uint64_t samples, function_of_fields make, std::vector<function_field> fields,
                                    function_options options = {});

/// Samples that a coroutine fetches. It is awaited on the loader's I/O thread, as many at a time as there are reads in
/// flight. It must not block, and must honour cancellation as any operation of Asio.
using coroutine_of_bytes = boost::asio::awaitable<std::vector<std::byte>, boost::asio::any_io_executor>;
[[nodiscard]] dataset from_coroutine(std::uint64_t samples, std::function<coroutine_of_bytes(std::uint64_t)> fetch,
                                     function_options options);

/// Samples of several fields: awaiting fetch(i) gives the bytes of each field of sample i, in their order. It is called
/// once for a sample in a batch, whichever of the fields are loaded; the others are dropped. function_options::field and
/// bytes_max are not used.
///   throws   as from_function() of several fields
using coroutine_of_several = boost::asio::awaitable<std::vector<std::vector<std::byte>>, boost::asio::any_io_executor>;
using coroutine_of_fields = std::function<coroutine_of_several(std::uint64_t)>;
[[nodiscard]] dataset from_coroutine(std::uint64_t samples, coroutine_of_fields fetch,
                                     std::vector<function_field> fields, function_options options = {});

/// Rows of dense host tensors with a common first axis, as TensorDataset. Tensors of one axis are columns (labels),
/// others are fields of field_kind::tensor. Their bytes are not copied: `owner` keeps them alive as long as the
/// dataset.
///   described_as   a name for the bytes, which you change whenever they change. Without it a run over more than 64 MiB
///                  can neither be saved nor resumed; smaller tensors are known by their digest
struct named_tensor {
  std::string name;
  tensor values;
};
[[nodiscard]] dataset from_tensors(std::vector<named_tensor> tensors, std::shared_ptr<const void> owner,
                                   std::vector<std::string> classes = {}, std::string described_as = {});

}  // namespace leat
#pragma GCC visibility pop
