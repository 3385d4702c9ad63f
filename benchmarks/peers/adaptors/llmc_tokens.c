// llm.c's own loader, dataloader_next_batch(): 12 x 1,024 tokens, x and y as int32, one window after another. Compiled
// against a checkout of https://github.com/karpathy/llm.c, of which nothing is here:
//
//     cc -Ofast -march=native -I LLM.C llmc_tokens.c -o llmc_tokens -lm && ./llmc_tokens TOKENS.bin WARM BATCHES
//
// TOKENS.bin has llm.c's header. Prints the line of JSON that the other adaptors print; protocol.py says what it counts.
#define _GNU_SOURCE
#include "llmc/dataloader.h"

#include <sys/resource.h>

#include <time.h>

static double monotonic_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// Begins a new epoch by itself: a state of llm.c in between ends in an assertion where its own loader does.
static void next_batch(DataLoader* loader, long index) {
  if (index > 0 && index % (long)loader->shard_num_samples == 0) dataloader_reset(loader);
  dataloader_next_batch(loader);
}

int main(int argc, char** argv) {
  const char* const said = getenv("LEAT_PEERS_STARTED");
  const double started = said != NULL ? atof(said) : monotonic_s();
  if (argc != 4) {
    fprintf(stderr, "usage: llmc_tokens TOKENS.bin WARM BATCHES\n");
    return 2;
  }
  enum { rows = 12, length = 1024 };
  const long warm = atol(argv[2]);
  const long batches = atol(argv[3]);
  DataLoader loader;
  dataloader_init(&loader, argv[1], rows, length, 0, 1, 0);
  double first_batch_s = 0;
  for (long i = 0; i < warm; ++i) {
    next_batch(&loader, i);
    if (i == 0) first_batch_s = monotonic_s() - started;
    if (loader.inputs[1] != loader.targets[0]) {
      fprintf(stderr, "y is not x shifted by one\n");
      return 1;
    }
  }
  const double cpu = cpu_s();
  const double began = monotonic_s();
  for (long i = 0; i < batches; ++i) next_batch(&loader, warm + i);
  const double seconds = monotonic_s() - began;
  printf(
      "{\"items\": %ld, \"batches\": %ld, \"seconds\": %.9f, \"cpu_s\": %.9f, \"first_batch_s\": %.6f, "
      "\"versions\": {\"llm.c\": \"a checkout\"}, \"settings\": \"-Ofast -march=native, should_shuffle=0\"}\n",
      batches, batches, seconds, cpu_s() - cpu, first_batch_s);
  dataloader_free(&loader);
  return 0;
}
