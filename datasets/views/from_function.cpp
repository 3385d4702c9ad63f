// Samples that a function or a coroutine makes.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"

#include <leat/error.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <boost/asio/awaitable.hpp>

#include <utility>

namespace leat {
namespace datasets {
namespace {

namespace asio = boost::asio;

using make_function = std::function<std::vector<std::byte>(std::uint64_t)>;
using fetch_function = std::function<asio::awaitable<std::vector<std::byte>>(std::uint64_t)>;

class function_model final : public dataset_model, making_facet {
 public:
  function_model(std::uint64_t samples, make_function make, fetch_function fetch, function_options options)
      : make_(std::move(make)),
        fetch_(std::move(fetch)),
        form_(make_ ? part_form::produced : part_form::awaited),
        name_(std::move(options.name)),
        described_as_(std::move(options.described_as)),
        columns_(std::move(options.columns), samples) {
    if (options.field.empty()) throw error(errc::usage, "function_options::field: a field needs a name");
    if (options.bytes_max == 0) {
      throw error(
          errc::usage,
          "function_options::bytes_max is not set: say how many bytes one call returns at most, the loader takes "
          "that much of its budget for each sample on its way");
    }
    if (!make_ && !fetch_) throw error(errc::usage, "the function that makes the samples is empty");
    field_info& field = fields_.emplace_back();
    field.name = std::move(options.field);
    field.kind = kind_of(field.name);
    field.samples = samples;
    field.bytes_max = options.bytes_max;
    field.bytes_total = samples * options.bytes_max;
    forms_.push_back(form_);
    facets_.columns = &columns_;
    classes_ = std::make_shared<class_names>(class_names{std::move(options.classes)});
    facets_.making = this;
  }

  std::uint64_t size() const noexcept override { return columns_.samples(); }

  void parts(std::uint64_t, std::span<const need> needs, part_list& out) const override {
    for (const need& wanted : needs) out.push_back({.field = wanted.field, .form = form_});
  }

  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t,
                                     std::vector<std::byte>& scratch) const override {
    scratch = make_(sample);
    check(sample, scratch.size());
    return scratch;
  }

  asio::awaitable<std::vector<std::byte>> fetch(std::uint64_t sample, std::uint16_t) const override {
    std::vector<std::byte> bytes = co_await fetch_(sample);
    check(sample, bytes.size());
    co_return bytes;
  }

  std::string name(std::uint64_t sample) const override { return name_ ? name_(sample) : str_cat("sample ", sample); }

  void describe(description& out) const override {
    describe_model(out, make_ ? "function" : "coroutine", *this);
    columns_.describe(out);
    if (described_as_.empty()) {
      out.add_unnamed("function",
                      "name it: function_options::described_as, another name whenever it gives other bytes");
    } else {
      out.add("function", described_as_);
    }
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.columns = columns_.memory_bytes();
    return held;
  }

 private:
  void check(std::uint64_t sample, std::size_t bytes) const {
    if (bytes <= fields_.front().bytes_max) return;
    throw error(errc::limit,
                str_cat(name(sample), ": the function returned ", bytes,
                        " bytes; function_options::bytes_max promised at most ", fields_.front().bytes_max));
  }

  make_function make_;
  fetch_function fetch_;
  part_form form_;
  std::function<std::string(std::uint64_t)> name_;
  std::string described_as_;
  column_table columns_;
};

}  // namespace
}  // namespace datasets

dataset from_function(std::uint64_t samples, std::function<std::vector<std::byte>(std::uint64_t)> make,
                      function_options options) {
  return dataset(std::make_shared<datasets::function_model>(samples, std::move(make), nullptr, std::move(options)));
}

dataset from_coroutine(std::uint64_t samples,
                       std::function<boost::asio::awaitable<std::vector<std::byte>>(std::uint64_t)> fetch,
                       function_options options) {
  return dataset(std::make_shared<datasets::function_model>(samples, nullptr, std::move(fetch), std::move(options)));
}

}  // namespace leat
