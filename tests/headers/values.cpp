// What most of a trainer's units include: datasets, fields, batches and what is in them.
#include <leat/batch.hpp>
#include <leat/corrupt_policy.hpp>
#include <leat/dataset.hpp>
#include <leat/dlpack.h>
#include <leat/error.hpp>
#include <leat/extent.hpp>
#include <leat/field.hpp>
#include <leat/lease.hpp>
#include <leat/next_result.hpp>
#include <leat/reader_options.hpp>
#include <leat/sampler.hpp>
#include <leat/stats.hpp>
#include <leat/stream.hpp>
#include <leat/tensor.hpp>
#include <leat/transforms.hpp>
#include <leat/units.hpp>
#include <leat/version.hpp>
