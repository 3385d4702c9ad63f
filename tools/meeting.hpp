// The ranks of a command that mpirun started, as a rendezvous: so that they compare their runs before the first batch.
#pragma once

#include <leat/rendezvous.hpp>
#include <leat/world.hpp>

#include <memory>
#include <string>

namespace leat::tools {

/// MPI is loaded when it is needed: the command runs where there is none.
class meeting {
 public:
  /// Every rank of the world calls this at the same point.
  ///   here   who launched the ranks. torchrun, srun without PMIx, and --rank have nothing to meet by
  explicit meeting(const found_world& here);
  meeting(const meeting&) = delete;
  meeting& operator=(const meeting&) = delete;

  /// Null where the ranks do not meet.
  [[nodiscard]] rendezvous* ranks() const noexcept { return ranks_.get(); }
  /// Why not, where they were expected to; empty otherwise.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }

  /// Waits until all ranks have come here. A rank whose run fails ends without it, and so its launcher ends the others.
  void end();

 private:
  std::unique_ptr<rendezvous> ranks_;
  void (*finalize_)() = nullptr;
  std::string why_not_;
};

}  // namespace leat::tools
