#!/bin/sh
# Fuzzes every parser, two at a time, starting from the kept corpus: tools/fuzz.sh [SECONDS_EACH] [TARGET...]
# Builds what is missing. What breaks a parser is left in build-fuzz/findings, and the script ends with status 1.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-600}
[ $# -gt 0 ] && shift
targets=${*:-npy onnx_model deployed_model idx cifar10 csv text image safetensors recipe graph symbolic_graph manifest run_files pairs labelled mask packed_manifest packed_index packed_record}
tools/install_packages.sh develop
cmake --preset fuzz >/dev/null
for target in $targets; do programs="${programs:-} fuzz_$target"; done
# shellcheck disable=SC2086  # a list of words
cmake --build build-fuzz --target $programs
mkdir -p build-fuzz/findings build-fuzz/logs
export OMP_NUM_THREADS=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# shellcheck disable=SC2086
printf '%s\n' $targets | xargs -P 2 -I{} sh -c '
  mkdir -p build-fuzz/corpus/{}
  if build-fuzz/tests/fuzz/fuzz_{} -max_total_time='"$seconds"' -timeout=20 -rss_limit_mb=3000 -max_len=65536 \
      -artifact_prefix=build-fuzz/findings/{}- build-fuzz/corpus/{} tests/fuzz/corpus/{} >build-fuzz/logs/{}.log 2>&1
  then grep -h "^Done" build-fuzz/logs/{}.log | sed "s/^/{}: clean. /"
  else echo "{}: FAILED, see build-fuzz/logs/{}.log"; touch build-fuzz/findings/failed; exit 1
  fi'
