// A finished batch: named tensors in one block of leased memory, on the host or on a device.
#pragma once

#include <leat/compiler.hpp>
#include <leat/digest.hpp>
#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// DLPack's own structs, declared in <leat/dlpack.h>.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

#pragma GCC visibility push(default)
namespace leat {

class batch_tensor;
struct picture_geometry;  // <leat/picture_geometry.hpp>
template <class Signature>
class completion;  // <leat/completion.hpp>

/// One batch: named tensors, and the only owner of their memory. Move-only. The memory is returned to the loader when
/// the batch has ended, and each tensor that dlpack() gave. A batch may outlive its loader.
/// The loader cannot fill the memory of a batch that you keep. If you keep loader_plan::batches of them (on a device:
/// loader_options::device_batches), no more come.
///
/// On a device no thread waits; only streams wait for one another:
///
///     batch->wait_on(stream);                          // the stream waits for the copy; this thread does not
///     step((*batch)["jpg"], (*batch)["cls"], stream);
///                                                      // the batch ends: the next copy there waits for the stream
///
/// On the host no stream waits, and release_on() returns the memory: at once, or pinned memory when all GPUs have passed what they were
/// asked for before. Thread: one at a time.
class batch {
 public:
  struct state;  // stages/batch/batch_state.hpp
  explicit batch(std::unique_ptr<state> from) noexcept;
  batch(batch&&) noexcept;
  batch& operator=(batch&&) noexcept;
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;
  ~batch();

  /// Makes the stream wait until the bytes have arrived. Call it for every stream that reads the batch, unless that
  /// stream waits for one that did.
  ///   consumer   a stream of the batch's device, which must exist until the batch has ended: its end records an event
  ///              there. stream() is the legacy default stream of that device; cudaStreamPerThread is the calling
  ///              thread's. If a batch ends on another thread than its cudaStreamPerThread, the legacy default stream
  ///              takes the event: it waits for that stream and for all blocking ones
  ///   captures   call it before a stream is captured into a graph, and once for each launch; not during the capture
  ///   throws     error{errc::usage}: a stream of another device, a stream that is being captured, or a call after
  ///              release_on(). Then no stream waits. error{errc::device}
  void wait_on(stream consumer);
  /// Returns the memory now. Call it when all work that reads the batch is in its streams: `consumer`, and those of
  /// wait_on(). The loader writes the memory again when these streams have passed this point. The end of a batch does
  /// the same for the streams of wait_on(). After it operator[] and bytes() throw. If dlpack() gave tensors away, the
  /// memory is returned with the last of them. What fails then fails the loader.
  ///   captures   not while one of those streams is being captured into a graph, since no event says what a graph
  ///              reads, and when. A batch that ends during a capture makes the loader fail, with the reason.
  ///              Pinned on the host it breaks the capture of any stream, and the loader goes on
  ///   throws     error{errc::usage}: as wait_on(), and the batch is held as before. error{errc::device}: the memory is
  ///              never used again, and the loader fails
  void release_on(stream consumer);
  /// Completes when the bytes have arrived, for programs that need this on the CPU: void(std::exception_ptr). The batch
  /// may end before it does. A stream that reads the batch needs wait_on() all the same: its event is what the next
  /// copy waits for.
  ///   completion     posted to the handler's associated executor. A handler without one (use_future) runs on the
  ///                  thread that sees the copy end, which may be the calling one, and must not block
  ///   errors         error{errc::device}; error{errc::usage} after release_on()
  ///   cancellation   total: completes with boost::system::system_error(operation_aborted); the copy goes on
  ///   defined in     <leat/ready.hpp>, which <leat/loader.hpp> includes
  template <class Token>
  auto ready(Token&& token);

  /// The output of this name, where the batch lies. Its first axis is valid_rows() long.
  ///   throws   error{errc::not_found} with the names that there are
  [[nodiscard]] batch_tensor operator[](std::string_view name) const;
  /// All outputs, in the order of the fields.
  [[nodiscard]] std::span<const std::string> outputs() const noexcept;
  /// One row of an output, with its padding. Only of a batch on the host: else throws error{errc::usage}.
  [[nodiscard]] std::span<const std::byte> bytes(std::string_view name, std::size_t row) const;

  /// Where the picture of a row lies: its crop, flips and warps. Of an image field, also of a batch on a device. Of rows of
  /// mixup() and cutmix() the row's own picture is meant.
  ///   throws   error{errc::not_found} for an output that is no picture, with the names that are; error{errc::usage} for a
  ///            row that the batch has not, for several pictures in a row, and for a row that is a mosaic
  [[nodiscard]] picture_geometry placement(std::string_view name, std::size_t row) const;

  /// Rows that hold a sample: the planned rows of this rank without the skipped ones. May be 0.
  [[nodiscard]] std::uint32_t valid_rows() const noexcept;
  /// How many of the valid rows, at the end, only fill the batch (last_batch::pad). Their samples came before in this
  /// epoch; leave them out of a metric.
  [[nodiscard]] std::uint32_t padded_rows() const noexcept;
  /// The epoch, from 0, and the batch's number in it, from 0.
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  [[nodiscard]] std::uint64_t index() const noexcept;
  /// The sample of each row, by its number in the dataset. For a substituted row, the number of the substitute.
  [[nodiscard]] std::span<const std::uint64_t> ids() const noexcept;
  /// The name of each row's sample; empty unless loader_options::names is set.
  [[nodiscard]] std::span<const std::string> names() const noexcept;
  /// The digest of the batch, of (epoch, index, row digests); not set unless loader_options::digests is. If rows are
  /// mixed, of the digests of the mixed rows.
  [[nodiscard]] std::optional<digest> content_digest() const noexcept;
  /// A digest for each row, of the sample id and the name, dtype, shape and bytes of each output, without padding and
  /// before mixing. Empty unless loader_options::digests is set.
  [[nodiscard]] std::span<const digest> row_digests() const noexcept;

  [[nodiscard]] const state& details() const noexcept { return *state_; }

 private:
  using ready_completion = completion<void(std::exception_ptr)>;
  void start_ready(ready_completion done);
  [[nodiscard]] tensor view(std::string_view name) const;

  std::unique_ptr<state> state_;
};

/// One output of a batch: a view that is valid as long as its batch, and may be handed to others by dlpack().
class batch_tensor : public tensor {
 public:
  /// The tensor for NumPy, PyTorch, JAX, CuPy and others that read DLPack, without a copy. The memory of the batch is
  /// not returned before the deleter has run. Each call gives another tensor, and each needs its deleter called once.
  ///
  ///   consumer   the stream that will read it: it waits for the bytes, and later writes into this memory wait for it.
  ///              Default: CUDA's default stream. std::nullopt (Python's -1): no stream waits, call wait_on() for each
  ///              that reads it. Ignored on the host
  ///   tensor     DLPack 1.2: kDLCPU 0, or kDLCUDA and its number; the shape with all strides, in elements; data
  ///              aligned to 256 bytes, null if there are no elements; writable, so no flags
  ///   deleter    on any thread, in any order, also after the batch and the loader have ended. By then all work that
  ///              reads the tensor is in its streams, which still exist. It waits for the device only if it is the last
  ///              that holds anything of a loader that has ended, and not for pinned memory on the host
  ///   throws     error{errc::device}; error{errc::usage} after release_on(). Then nothing was given away
  ///   thread     one at a time, as the batch
  ///   source     dmlc.github.io/dlpack; the stream rule is the array API's, data-apis.org, __dlpack__
  [[nodiscard]] DLManagedTensorVersioned* dlpack(std::optional<stream> consumer = stream()) const;
  /// The same in the struct of DLPack before 1.0, without version and flags, for older consumers (capsule "dltensor").
  [[nodiscard]] DLManagedTensor* dlpack_unversioned(std::optional<stream> consumer = stream()) const;

 private:
  friend class batch;
  batch_tensor(const tensor& view, batch::state& of) : tensor(view), of_(&of) {}

  batch::state* of_;
};

}  // namespace leat
#pragma GCC visibility pop
