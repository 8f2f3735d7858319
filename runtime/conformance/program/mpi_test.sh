#!/bin/sh
# Ranks as processes: mpi_test.sh PROGRAM MPIEXEC. Two processes train as two threads do, byte for byte; errors and
# signals end all of them with the exit code of one.
set -u
program=$1
mpiexec=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BIGRAM_RANKS=2 OMPI_MCA_mpi_yield_when_idle=1
fail() { echo "FAIL $1"; cat "$work/err"; exit 1; }
launch() {
  count=$1
  shift
  "$mpiexec" -n "$count" --oversubscribe --bind-to none --allow-run-as-root "$program" --data "$work/text.txt" --bytes \
    --init random --threads 1 "$@" >"$work/out" 2>"$work/err"
}
count_places() {
  for log in "$work"/mpi/logs/*; do
    sed -n 's/.* threads* on processors \(.*\), seed .*/\1/p' "$log" | tail -n 1
  done | sort -u | grep -c .
}
unset OMP_PROC_BIND OMP_PLACES GOMP_CPU_AFFINITY KMP_AFFINITY
yes 'a stitch in time saves nine' | head -n 300 >"$work/text.txt"

"$program" --data "$work/text.txt" --bytes --init random --threads 1 --steps 6 -o "$work/local" >"$work/out" \
  2>"$work/err" || fail "local run"
launch 2 --steps 3 -o "$work/mpi" || fail "mpi run"
[ "$(grep -c 'tokens/s' "$work/out")" = 1 ] || fail "one summary"
[ "$(nproc)" -lt 2 ] || [ "$(count_places)" = 2 ] || fail "processes on processors of their own"
launch 2 --steps 6 -o "$work/mpi" --resume --bind none || fail "mpi resume"
[ "$(count_places)" = 1 ] || fail "processes that are not to be bound"
for file in parameters state; do
  cmp "$work/local/checkpoints/step-000006/$file-00000.safetensors" \
    "$work/mpi/checkpoints/step-000006/$file-00000.safetensors" || fail "mpi and local differ in $file"
done

for run in local mpi; do
  grep -o '"collective_bytes": {.*}' "$work/$run/metrics.jsonl" >"$work/$run.bytes"
done
[ "$(grep -c . "$work/mpi.bytes")" = 6 ] || fail "bytes of each step"
cmp "$work/local.bytes" "$work/mpi.bytes" || fail "mpi and local count other bytes"

"$program" --data "$work/text.txt" --bytes --init random --threads 1 --steps 1 -o "$work/baseline" \
  --instructions baseline >"$work/out" 2>"$work/err" || fail "run by the baseline's kernels"
grep -q '"gemm": ".*openblas' "$work/baseline/run.json" || fail "kernels of the baseline"

# Two positions, each a process, train as one does; each writes what it holds.
BIGRAM_POSITIONS=1 "$program" --data "$work/text.txt" --bytes --init random --threads 1 --steps 6 -o "$work/one" \
  --dump-gradients "$work/one.gradients" >"$work/out" 2>"$work/err" || fail "run of one position"
export BIGRAM_POSITIONS=2
launch 2 --steps 6 -o "$work/two" --dump-gradients "$work/two.gradients" || fail "run of two positions"
"$program" --data "$work/text.txt" --bytes --init random --threads 1 --steps 6 -o "$work/threads" >"$work/out" \
  2>"$work/err" || fail "run of two positions as threads"
for run in two threads; do
  for key in loss grad_norm; do
    grep -o "\"$key\": [^,]*" "$work/one/metrics.jsonl" >"$work/one.$key"
    grep -o "\"$key\": [^,]*" "$work/$run/metrics.jsonl" >"$work/$run.$key"
    cmp "$work/one.$key" "$work/$run.$key" || fail "$key of $run positions"
  done
  for file in parameters-00000 parameters-00001 state-00000 state-00001; do
    cmp "$work/two/checkpoints/step-000006/$file.safetensors" \
      "$work/$run/checkpoints/step-000006/$file.safetensors" || fail "$file of $run positions"
  done
done
cmp "$work/one.gradients" "$work/two.gradients" || fail "gradients of two positions"
unset BIGRAM_POSITIONS

launch 3 --steps 3 -o "$work/three"
[ $? = 1 ] || fail "exit code of a wrong rank count"
[ "$(grep -c 'the plan is for 2 ranks, but 3 were started' "$work/err")" = 1 ] || fail "message of a wrong rank count"
launch 2 --steps 3 -o "$work/mpi"
[ $? = 1 ] || fail "exit code of a used folder"
[ "$(grep -c 'already holds a checkpoint' "$work/err")" = 1 ] || fail "message of a used folder"
launch 2 --stpes 3
[ $? = 2 ] || fail "exit code of an unknown flag"
[ "$(grep -c 'did you mean --steps' "$work/err")" = 1 ] || fail "message of an unknown flag"

# An id that only one rank meets: rank 1 reads every odd micro-batch.
for i in $(seq 1 129); do printf '\007\000'; done >"$work/bad.bin"
printf '\377\377' | dd of="$work/bad.bin" bs=1 seek=140 conv=notrunc 2>/dev/null
"$mpiexec" -n 2 --oversubscribe --bind-to none --allow-run-as-root "$program" --data "$work/bad.bin" --init random \
  --threads 1 --steps 50 -o "$work/bad" >"$work/out" 2>"$work/err"
[ $? = 1 ] || fail "exit code of an error on one rank"
[ "$(grep -c 'holds the id 65535 at position 70' "$work/err")" = 1 ] || fail "message of an error on one rank"

# mpirun forwards SIGUSR1 to its processes.
"$mpiexec" -n 2 --oversubscribe --bind-to none --allow-run-as-root "$program" --data "$work/text.txt" --bytes \
  --init random --threads 1 --steps 100000000 -q -o "$work/stop" >"$work/out" 2>"$work/err" &
job=$!
while [ ! -s "$work/stop/metrics.jsonl" ]; do
  kill -0 $job 2>/dev/null || fail "a run to stop"
  sleep 0.1
done
kill -USR1 $job
wait $job
[ $? = 7 ] || fail "exit code of an interruption"
[ "$(grep -c 'interrupted after step' "$work/err")" = 1 ] || fail "message of an interruption"
ls "$work/stop/checkpoints" | grep -q '^step-' || fail "checkpoint of an interruption"
echo "ok"
