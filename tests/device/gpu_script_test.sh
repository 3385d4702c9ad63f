#!/usr/bin/env bash
# What scripts/gpu does and says, with every tool that it calls made up: no GPU is needed, and nothing is built.
#
#   gpu_script_test.sh <path of scripts/gpu>
set -euo pipefail
script=$1
# scripts/gpu itself may have started us, told by these what is not meant for us.
for each in "${!LEAT_@}"; do unset "$each"; done
where=$(mktemp -d)
trap 'rm -rf -- "$where"' EXIT
mkdir "$where/bin"
export FAKE=$where PATH=$where/bin:/usr/bin:/bin
failures=0

# fake <name>: the rest of it from standard input. Each writes its arguments down.
fake() {
  { printf '#!/usr/bin/env bash\nprintf "%%s\\n" "%s $*" >>"$FAKE/log"\n' "$1"; cat; } >"$where/bin/$1"
  chmod +x "$where/bin/$1"
}
fake nvcc <<'END'
[[ $1 == --version ]] && echo "Cuda compilation tools, release 13.0, V13.0.1"
[[ $1 == --list-gpu-arch ]] && printf 'compute_%s\n' 80 86 90
exit 0
END
fake __nvcc_device_query <<'END'
[[ ! -e $FAKE/no-gpu ]] || exit 9
cat "$FAKE/capabilities"
END
# It may not be there, or say what CUDA does not.
fake nvidia-smi <<'END'
exit 9
END
mkdir -p "$where/proc/gpus/0000:17:00.0"
echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.1  Mon" >"$where/proc/version"
printf 'Model: \t\t NVIDIA Fake 1\nIRQ: 1\n' >"$where/proc/gpus/0000:17:00.0/information"
fake strip <<'END'
cp -- "${*: -1}" "$2"
END
fake ldd <<'END'
printf '\tlibfake.so.1 => %s (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n' "$FAKE/libfake.so.1"
END
echo "a library" >"$where/libfake.so.1"
# Builds a target by making its file; one that is in "slow" takes for ever, one in "broken" fails and leaves the others be.
fake cmake <<'END'
if [[ $1 != --build ]]; then exit "$(cat "$FAKE/configure" 2>/dev/null || echo 0)"; fi
build=$2 result=0
shift 5
while (($#)) && [[ $1 != -- ]]; do
  if grep -qsx "$1" "$FAKE/slow"; then sleep 600; fi
  if grep -qsx "$1" "$FAKE/broken"; then
    result=1
    echo "error: no $1"
  else
    mkdir -p "$build/built" "$build/tests/device" "$build/benchmarks"
    : >"$build/built/$1"
    printf '#!/bin/sh\nprintf "%%s\\n" "%s, seeds ${LEAT_SEEDS-}" >>"$FAKE/log"\nexit 0\n' "$1" >"$build/tests/device/$1"
    chmod +x "$build/tests/device/$1"
  fi
  shift
done
cat >"$build/benchmarks/device_benchmark" <<'BENCHMARK'
#!/usr/bin/env bash
printf '%s\n' "device_benchmark $*" >>"$FAKE/log"
word=measured
[[ ! -e $FAKE/benchmark-hangs ]] || word="NOT FINISHED: measured"
while (($#)); do
  if [[ $1 == --json || $1 == --markdown ]]; then echo "$word" >"$2"; fi
  shift
done
BENCHMARK
printf '#!/bin/sh\nprintf "driver_probe with %%s\\n" "$CUDA_DEVICE_MAX_CONNECTIONS" >>"$FAKE/log"\necho "| probed |"\n' >"$build/benchmarks/driver_probe"
chmod +x "$build/benchmarks/"*
exit $result
END
fake ninja <<'END'
[[ -e $2/built/${*: -1} ]] && echo "ninja: no work to do." || echo "[1/1] building"
END
fake ctest <<'END'
while (($#)); do
  if [[ $1 == --output-log ]]; then echo "all is well" >"$2"; fi
  shift
done
END
fake compute-sanitizer <<'END'
echo "[ RUN      ] one"
if grep -qs "$2" "$FAKE/finds"; then
  echo "========= Invalid __global__ read of size 4 bytes"
  echo "========= ERROR SUMMARY: 1 error"
  exit 9
fi
echo "========= ERROR SUMMARY: 0 errors"
END

# Time is made up too where FAKE_CLOCK is set, since `timeout` is: a command that is one of "hangs" takes its whole limit, has to be
# killed, and does nothing; "benchmark-hangs" has the benchmark write first.
cat >"$where/clock" <<'END'
if [[ ${FAKE_CLOCK-} ]]; then
  timeout() {
    local limit
    [[ $1 != --kill-after=* ]] || shift
    limit=$1
    shift
    printf '%s\n' "timeout $limit $*" >>"$FAKE/log"
    if [[ -e $FAKE/benchmark-hangs && $* == benchmarks/device_benchmark* ]]; then
      "$@"
    elif ! grep -qsE -f "$FAKE/hangs-for-ever" <<<"$*"; then
      "$@"
      return
    fi
    SECONDS=$((SECONDS + limit + 5))
    return 137
  }
fi
END
export BASH_ENV=$where/clock

# run <name>: one run of the script from nothing; $result, $where/out and $where/log are what became of it.
run() {
  name=$1
  rm -rf -- "$where/build" "$where/results" "$where/log" "$where/out"
  mkdir -p "$where/build"
  result=0
  LEAT_NVCC=$where/bin/nvcc LEAT_GPU_BUILD=$where/build LEAT_RESULTS=$where/results LEAT_COMMIT=abc \
    LEAT_PROC_NVIDIA=$where/proc "$script" "${@:2}" >"$where/out" 2>&1 || result=$?
}
# expect <what> <command...>: of the latest run
expect() {
  local what=$1
  shift
  if "$@"; then return 0; fi
  failures=$((failures + 1))
  printf 'FAILED: %s: %s: %s\n' "$name" "$what" "$*"
  sed 's/^/    /' "$where/out" "$where/log"
}
says() { grep -qF -- "$1" "$where/out"; }
called() { grep -qE -- "$1" "$where/log"; }
not() { ! "$@"; }

echo 90 >"$where/capabilities"
LEAT_GPU_LOGS=$where/logs run "a GPU, and all is well"
for log in configure build tests loader_tests checks; do expect "keeps the log" [ -e "$where/logs/$log.log" ]; done
rm -rf -- "$where/logs"
expect "ends with 0" [ "$result" -eq 0 ]
expect "is compiled for that GPU" called '^cmake --preset .*-DLEAT_CUDA_ARCHITECTURES=90-real( |$)'
expect "runs all the tests but those of the loader" called '^ctest .* -E \^\(loader_on_cuda\)\('
expect "runs those in one process" called '^loader_on_cuda_tests, seeds 0\.2$'
expect "says how they went" says "loader_on_cuda_tests: 0 passed, 0 failed"
for tool in memcheck initcheck; do
  for program in cuda_tests loader_on_cuda_tests; do
    expect "looks at it" called "^compute-sanitizer --tool $tool .*tests/device/$program "
  done
done
expect "says what was found" says "compute-sanitizer memcheck, cuda_tests: ERROR SUMMARY: 0 errors"
expect "races" called '^compute-sanitizer --tool racecheck .*kernels'
expect "writes the result" [ -s "$(echo "$where"/results/gpu-nvidia-fake-1-*.json)" ]
expect "names the driver and the commit" called 'device_benchmark .*driver=580.1 .*commit=abc'
for connections in 1 8; do expect "probes the driver" called "^driver_probe with $connections$"; done
expect "shows what it found" grep -q '^| probed |$' "$where"/results/gpu-nvidia-fake-1-*.md

echo initcheck >"$where/finds"
LEAT_GPU_LOGS=$where/logs run "a check finds something"
rm "$where/finds"
expect "does not end with 0" [ "$result" -ne 0 ]
expect "says which" says "failed: compute-sanitizer initcheck, cuda_tests;"
expect "shows it" says "========= Invalid __global__ read of size 4 bytes"
expect "has all of them in the log" [ "$(grep -c '^\[ RUN ' "$where/logs/checks.log")" -eq 5 ]
rm -rf -- "$where/logs"

run "packing, which needs no GPU" --pack "$where/packed"
expect "ends with 0" [ "$result" -eq 0 ]
expect "builds for the GPUs that were said" called '^cmake --preset .*-DLEAT_CUDA_ARCHITECTURES=90-real .*-DLEAT_CUBLAS_LIBRARY=OFF'
expect "has what runs on a GPU" [ "$(tar -tzf "$where/packed/leat-gpu.tar.gz" | sort | xargs)" = \
  "./ ./commit ./cuda_tests ./device_benchmark ./driver_probe ./lib/ ./lib/libfake.so.1 ./loader_on_cuda_tests" ]
expect "runs nothing" not called '^device_benchmark'

run "what was built before" --prebuilt "$where/packed"
expect "ends with 0" [ "$result" -eq 0 ]
first() { grep -nE -- "$1" "$where/log" | head -n 1 | cut -d: -f1; }
expect "runs it before anything is built" [ "$(first '^device_benchmark')" -lt "$(first '^cmake --preset')" ]
expect "measures twice" [ "$(grep -c '^device_benchmark' "$where/log")" -eq 2 ]
expect "runs its tests" called '^cuda_tests, seeds '
expect "writes its result apart" [ -s "$(echo "$where"/results/gpu-nvidia-fake-1-*-prebuilt.json)" ]
echo device_benchmark >"$where/broken"
run "what was built before, where the build fails" --prebuilt "$where/packed"
rm "$where/broken"
expect "does not end with 0" [ "$result" -ne 0 ]
expect "has figures nonetheless" [ -s "$(echo "$where"/results/gpu-nvidia-fake-1-*-prebuilt.md)" ]
run "a folder without it" --prebuilt "$where/none"
expect "does not end with 0" [ "$result" -ne 0 ]
expect "says how to make it" says "scripts/gpu --pack"

# in_all <seconds>: the run has taken no more.
in_all() { local took; took=$(grep -oE '[0-9]+ s in all' "$where/out") && ((${took%% *} <= $1)); }
# limit_of <command>: what it was given, or nothing where it did not run
limit_of() { sed -nE "s|^timeout ([0-9]+) [^ ]*$1.*|\\1|p" "$where/log" | head -n 1; }

export FAKE_CLOCK=1
: >"$where/hangs-for-ever"
run "nothing hangs, by a clock that is made up"
expect "ends with 0" [ "$result" -eq 0 ]
expect "has time for the tests" [ "$(limit_of ctest)" -ge 140 ]
expect "has time for the loader's tests" [ "$(limit_of in_one_process)" -eq 150 ]
expect "has time for the checks" [ "$(limit_of compute-sanitizer)" -eq 45 ]
expect "leaves to the benchmark what nobody took" [ "$(limit_of benchmarks/device_benchmark)" -ge 400 ]

printf '%s\n' '^cmake --build .* kernels_tests ' '^ctest' 'in_one_process' 'compute-sanitizer' >"$where/hangs-for-ever"
touch "$where/benchmark-hangs"
run "half of the build hangs, and all that is run, the benchmark at its end"
rm "$where/benchmark-hangs"
expect "does not end with 0" [ "$result" -ne 0 ]
expect "ends within 8 minutes" in_all 480
expect "names it" says "benchmark (not done after"
expect "leaves the benchmark its time" [ "$(limit_of benchmarks/device_benchmark)" -ge 95 ]
seconds=$(sed -nE 's/^device_benchmark .*--seconds ([0-9]+) .*/\1/p' "$where/log")
expect "tells the benchmark to end by itself before" [ $((seconds + 20)) -le "$(limit_of benchmarks/device_benchmark)" ]
expect "leaves time for the loader's tests" [ "$(limit_of in_one_process)" -ge 50 ]
expect "leaves time for a check" [ "$(limit_of compute-sanitizer)" -gt 0 ]
expect "keeps what the benchmark wrote" grep -q "NOT FINISHED: measured" "$where"/results/gpu-nvidia-fake-1-*.md
expect "says what it is" says "(what was measured before it ended)"

printf '%s\n' '^cmake --preset' >"$where/hangs-for-ever"
run "configuring hangs"
expect "does not end with 0" [ "$result" -ne 0 ]
expect "says so" says "configuring was not done in 90 s"
: >"$where/hangs-for-ever"
echo 1 >"$where/configure"
(cd "$where" && LEAT_GPU_LOGS=logs run "configuring fails" && exit "$result") || result=$?
name="configuring fails"
expect "does not end with 0" [ "$result" -ne 0 ]
expect "keeps the log, in the folder that was meant" [ -e "$where/logs/configure.log" ]
rm "$where/configure"
expect "says so" says "configuring failed; the reason is above"
unset FAKE_CLOCK

printf '90,86\n' >"$where/capabilities"
run "two kinds of GPUs"
expect "is compiled for both" called '-DLEAT_CUDA_ARCHITECTURES=86-real;90-real( |$)'

printf '90,121\n' >"$where/capabilities"
run "a GPU that nvcc does not know"
expect "is compiled for all that leat knows" called '-DLEAT_CUDA_ARCHITECTURES=( |$)'
echo 90 >"$where/capabilities"

mv "$where/proc" "$where/no-proc"
run "a driver that says nothing of itself"
mv "$where/no-proc" "$where/proc"
expect "ends with 0" [ "$result" -eq 0 ]
expect "names what CUDA says" says "GPU: NVIDIA GPU, compute capability 90; driver not known"

echo loader_on_device_tests >"$where/slow"
LEAT_BUILD_SECONDS=2 run "a part that is not built in time"
rm "$where/slow"
expect "does not end with 0" [ "$result" -ne 0 ]
expect "names what is not built" says "building the tests without one: not done in the 2 s"
expect "names what comes behind it" says "trainer_cuda"
expect "leaves its tests out" called '^ctest .* -E \^\(loader_on_device\|.*loader_on_cuda\)\(\\\.\|_tests_NOT_BUILT\)'
expect "leaves the examples out" not called '^ctest .*examples'
expect "runs what is built" called '^compute-sanitizer --tool memcheck .*cuda_tests'
expect "measures" [ -s "$(echo "$where"/results/gpu-nvidia-fake-1-*.md)" ]
expect "says in the result what failed" called 'device_benchmark .*FAILED before the benchmark: building the tests without one'

printf '%s\n' device_benchmark cuda_tests >"$where/broken"
run "a benchmark and tests that cannot be built"
rm "$where/broken"
expect "does not end with 0" [ "$result" -ne 0 ]
expect "shows why" says "error: no device_benchmark"
expect "names them" says "building the benchmark: device_benchmark"
expect "says that there is no result" says "the benchmark, and with it the result"
expect "has the rest of a part built" called '^cmake --build .* -- -k 0$'
expect "does not run it" not called '^device_benchmark'
expect "does not look at the tests" not called 'tests/device/cuda_tests'
expect "looks at the others" called 'memcheck .*tests/device/loader_on_cuda_tests'
expect "writes nothing" [ ! -e "$where/results" ]

touch "$where/no-gpu"
run "no GPU"
rm "$where/no-gpu"
expect "ends with 0" [ "$result" -eq 0 ]
expect "is compiled for all that leat knows" called '-DLEAT_CUDA_ARCHITECTURES=( |$)'
expect "says what is left out" says "everything on a GPU: CUDA finds none"
expect "does not look at anything" not called '^compute-sanitizer'
expect "writes nothing" [ ! -e "$where/results" ]

# A program of five tests, of which the second fails, the third ends the process, and the fourth hangs.
name="tests in one process"
cat >"$where/five" <<'END'
#!/usr/bin/env bash
echo "a process" >>"$FAKE/log"
for arg; do [[ $arg != --gtest_filter=* ]] || filter=:${arg##*-}:; done
for test in s.one s.two s.three s.four s.five; do
  [[ $filter != *:$test:* ]] || continue
  echo "[ RUN      ] $test"
  case $test in
    s.two) printf '[  FAILED  ] %s (1 ms)\n[ RUN      ] s.five\n[  SKIPPED ] s.five (0 ms)\n' "$test" && exit 1 ;;
    s.three) exit 9 ;;
    s.four) exec sleep 600 ;;
  esac
  echo "[       OK ] $test (1 ms)"
done
END
chmod +x "$where/five"
: >"$where/log"
result=0
"$(dirname -- "$script")/in_one_process" 1 "$where/tests.log" "$where/five" >"$where/out" 2>&1 || result=$?
expect "does not end with 0" [ "$result" -ne 0 ]
expect "names what failed" says "[  FAILED  ] s.two (1 ms)"
expect "names what ended the process" says "[  FAILED  ] s.three (the process ended with 9)"
expect "names what hung" says "[  FAILED  ] s.four (said nothing for 1 s)"
expect "runs each test once" says "five: 2 passed, 3 failed, 0 skipped"
expect "has a process for those behind each of them" [ "$(grep -c 'a process' "$where/log")" -eq 4 ]
expect "keeps what each said" grep -q '       OK \] s.five' "$where/tests.log"

((failures == 0)) || exit 1
echo "as it should be"
