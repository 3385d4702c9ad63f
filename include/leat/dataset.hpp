// Datasets: what one is (samples.hpp), and how each kind of source is opened.
#pragma once

#include <leat/compiler.hpp>
#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>
