// A finished batch: named tensors in one block of leased memory, on the host or on a device.
#pragma once

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

namespace leat {

class batch_tensor;
template <class Signature>
class completion;  // <leat/completion.hpp>

/// One batch. Move-only: the only owner of its memory, which goes home when the batch ends (and the last tensor of it that
/// was given away by dlpack()). It may outlive its loader.
/// Each batch that is kept is memory the loader cannot fill; who keeps as many as loader_plan::batches (on a device:
/// loader_options::device_batches) gets no more.
///
/// On a device nobody waits for anybody but the streams for one another:
///
///     batch->wait_on(stream);                          // the stream waits for the copy; this thread does not
///     step((*batch)["jpg"], (*batch)["cls"], stream);
///                                                      // the batch ends: the next copy there waits for the stream
///
/// On the host the same calls are there and have nothing to wait for. Thread: one at a time.
class batch {
 public:
  struct state;  // stages/batch_state.hpp
  explicit batch(std::unique_ptr<state> from) noexcept;
  batch(batch&&) noexcept;
  batch& operator=(batch&&) noexcept;
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;
  ~batch();

  /// What is put into `consumer` from here on runs after the bytes have arrived. On every stream that reads the batch,
  /// unless it waits for one that did.
  ///   consumer   a stream of the batch's device, which has to exist until the batch has ended: that records an event on it.
  ///              stream() is that device's legacy default stream, whatever device the thread has chosen;
  ///              cudaStreamPerThread is the calling thread's. Where the batch ends on another thread, the legacy default
  ///              stream is recorded in the place of the latter, which waits for it and for all blocking streams
  ///   captures   not while the stream is being captured into a graph: before the capture, and once for each launch
  ///   throws     error{errc::usage}: another device's stream, one that is being captured, or after release_on(). No stream
  ///              waits then. error{errc::device}
  void wait_on(stream consumer);
  /// All that reads the batch was put into its streams: `consumer`, and those of wait_on(). Its memory goes home now, and
  /// is written again when they have passed this point. The batch's end does the same for the streams of wait_on().
  /// After it operator[] and bytes() throw.
  /// With tensors out that dlpack() gave, the memory goes home with the last of them; what fails then fails the loader.
  ///   captures   not while one of those streams is being captured: what a graph will read, and when, no event tells. A batch
  ///              that ends its life there has the loader fail, in words
  ///   throws     error{errc::usage}: as wait_on(); the batch is held as before. error{errc::device}: the memory is then never
  ///              used again, and the loader fails
  void release_on(stream consumer);
  /// Completes when the bytes have arrived, for who needs that on the CPU's time line: void(std::exception_ptr). The
  /// batch may end before it does. A stream that reads the batch needs wait_on() nonetheless: its end is what the next
  /// copy waits for.
  ///   completion     posted to the handler's associated executor; a handler that has none (use_future) runs on the thread that
  ///                  sees the copy end, perhaps the calling one, and must not block
  ///   errors         error{errc::device}; error{errc::usage} after release_on()
  ///   cancellation   total: completes with boost::system::system_error(operation_aborted); the copy goes on
  ///   defined in     <leat/ready.hpp>, which <leat/loader.hpp> includes
  template <class Token>
  auto ready(Token&& token);

  /// The output of this name, where the batch lies; its first axis is valid_rows(). Throws error{errc::not_found}, naming
  /// what there is.
  [[nodiscard]] batch_tensor operator[](std::string_view name) const;
  /// All outputs, in the order of the fields.
  [[nodiscard]] std::span<const std::string> outputs() const noexcept;
  /// One row of an output; of a padded one with its padding. On the host: throws error{errc::usage} for a batch on a device.
  [[nodiscard]] std::span<const std::byte> bytes(std::string_view name, std::size_t row) const;

  /// Rows that hold a sample: the planned rows of this rank less those skipped. May be 0.
  [[nodiscard]] std::uint32_t valid_rows() const noexcept;
  /// Of the valid rows, how many at the end are there only to fill the batch (last_batch::pad): samples that come a second time in
  /// the epoch, as they came before. A metric leaves them out.
  [[nodiscard]] std::uint32_t padded_rows() const noexcept;
  /// The epoch, from 0, and the batch's number in it, from 0.
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  [[nodiscard]] std::uint64_t index() const noexcept;
  /// For each row the sample that lies in it, in the dataset's numbering. A substituted row names its substitute.
  [[nodiscard]] std::span<const std::uint64_t> ids() const noexcept;
  /// For each row the sample's name; empty unless loader_options::names.
  [[nodiscard]] std::span<const std::string> names() const noexcept;
  /// Over (epoch, index, row digests in order); unset unless loader_options::digests. Where rows are mixed
  /// (loader_options::mix), over the digests of the mixed rows.
  [[nodiscard]] std::optional<digest> content_digest() const noexcept;
  /// One per row, over the sample id and each output's name, dtype, shape and bytes, without padding; empty unless digests.
  /// Before mixing.
  [[nodiscard]] std::span<const digest> row_digests() const noexcept;

  [[nodiscard]] const state& details() const noexcept { return *state_; }

 private:
  using ready_completion = completion<void(std::exception_ptr)>;
  void start_ready(ready_completion done);
  [[nodiscard]] tensor view(std::string_view name) const;

  std::unique_ptr<state> state_;
};

/// One output of a batch: a view, as any tensor, good as long as its batch; and the way to hand it to others.
class batch_tensor : public tensor {
 public:
  /// For NumPy, PyTorch, JAX, CuPy and whoever else reads DLPack: no bytes are copied, and the batch's memory does not go
  /// home before the tensor's deleter has run. Each call gives one more, of which each needs its deleter called, once.
  ///
  ///   consumer   the stream that will read it, as DLPack has the consumer say: it waits for the bytes, and what is written
  ///              into this memory later waits for it. Not said: CUDA's default stream. std::nullopt (Python's -1): nobody
  ///              waits; wait_on() for the streams that read it. On the host it is not looked at
  ///   tensor     DLPack 1.2: kDLCPU 0, or kDLCUDA and its number; the shape with all strides, in elements; data aligned to
  ///              256 bytes, null where there are no elements; writable, so no flags
  ///   deleter    on any thread, in any order, also after the batch and the loader have ended; never waits for the device
  ///              unless it is the last that holds anything of a loader that has ended. By then all that reads the tensor
  ///              was put into its streams, which still exist
  ///   throws     error{errc::device}; error{errc::usage} after release_on(); nothing was given away then
  ///   thread     as the batch: one at a time
  ///   source     dmlc.github.io/dlpack; the stream rule is the array API's, data-apis.org, __dlpack__
  [[nodiscard]] DLManagedTensorVersioned* dlpack(std::optional<stream> consumer = stream()) const;
  /// The same as the struct before 1.0, which has neither version nor flags: for older consumers (capsule "dltensor").
  [[nodiscard]] DLManagedTensor* dlpack_unversioned(std::optional<stream> consumer = stream()) const;

 private:
  friend class batch;
  batch_tensor(const tensor& view, batch::state& of) : tensor(view), of_(&of) {}

  batch::state* of_;
};

}  // namespace leat
