// Whether the files that a run begins anew may be: all are looked at before the first of them is emptied.
#pragma once

#include <string>

namespace leat::stages {

/// What is there of another kind is not replaced; nothing is made or changed.
///   throws   error{errc::usage}: another file, no regular one, or another process is writing it. As explain_write()
void check_journal_replaceable(const std::string& path);
void check_receipts_replaceable(const std::string& path);
void check_record_replaceable(const std::string& path);

}  // namespace leat::stages
