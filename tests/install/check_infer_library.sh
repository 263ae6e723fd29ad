#!/bin/sh
# What libweft_infer is to be: small, and without what only training, charts and ONNX files want.
set -eu
library=$1
configuration=$2
needed=$(objdump -p "$library" | awk '$1 == "NEEDED" {print $2}')
for unwanted in mpi cairo protobuf zstd; do
  case "$needed" in *"$unwanted"*) echo "$library needs $unwanted"; exit 1 ;; esac
done
exported=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^weft_' || true)
[ -z "$exported" ] || { echo "$library exports more than its interface: $exported"; exit 1; }
bytes=$(stat -L -c %s "$library")
echo "$bytes bytes; needs" $needed
[ "$configuration" != Release ] || [ "$bytes" -le 3000000 ] || { echo "$library is larger than 3 MB"; exit 1; }
