#!/bin/sh
# Ranks as processes that know each other by variables: variables_test.sh PROGRAM. Two train as two threads do, byte for
# byte, over shared memory and over TCP; errors and signals end both.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BIGRAM_RANKS=2 MASTER_ADDR=localhost
fail() { echo "FAIL $1"; cat "$work"/err*; exit 1; }
# A port of each job: what another job has left may still be busy. Those from 32768 on are the system's, which gives
# them to whoever connects.
port=$((20000 + $$ % 12000))

# rank R COMMAND... starts a rank; its output is in out.R and err.R.
rank() {
  number=$1
  shift
  RANK=$number WORLD_SIZE=${size-2} MASTER_PORT=$port "$@" >"$work/out.$number" 2>"$work/err.$number"
}
# launch FLAGS... runs both ranks; leaves their exit codes in `first` and `second`.
launch() {
  port=$((port + 1))
  rank 1 $alone "$program" --data "$work/text.txt" --bytes --init random --threads 1 "$@" &
  other=$!
  rank 0 "$program" --data "$work/text.txt" --bytes --init random --threads 1 "$@"
  first=$?
  wait $other
  second=$?
}
alone=
yes 'a stitch in time saves nine' | head -n 300 >"$work/text.txt"

"$program" --data "$work/text.txt" --bytes --init random --threads 1 --steps 6 -o "$work/local" >"$work/out" \
  2>"$work/err" || fail "local run"
same() {
  for file in parameters state; do
    cmp "$work/local/checkpoints/step-000006/$file-00000.safetensors" \
      "$work/$1/checkpoints/step-000006/$file-00000.safetensors" || fail "$1 and local differ in $file"
  done
}
launch --steps 3 -o "$work/shared"
[ "$first$second" = 00 ] || fail "exit codes $first and $second"
[ "$(cat "$work/out.0" "$work/out.1" | grep -c 'tokens/s')" = 1 ] || fail "one summary"
grep -q '"communicator": "tcp"' "$work/shared/run.json" || fail "what the record says of the communicator"
launch --steps 6 -o "$work/shared" --resume
[ "$first$second" = 00 ] || fail "exit codes $first and $second of a resumed run"
same shared

# In another space of process ids the second rank counts as on another host.
if unshare --pid --fork true 2>/dev/null; then
  alone='unshare --pid --fork --kill-child'
  launch --steps 6 -o "$work/messages"
  [ "$first$second" = 00 ] || fail "exit codes $first and $second over TCP"
  same messages
  alone=
else
  echo "not run: TCP between hosts, which needs a namespace of process ids"
fi

size=3
launch --steps 3 -o "$work/three"
[ "$first$second" = 11 ] || fail "exit codes $first and $second of a wrong size"
grep -q 'the plan is for 2 ranks, but WORLD_SIZE is 3' "$work/err.0" || fail "message of a wrong size"
size=2

# run_long starts both ranks in the background and waits for a step; they are `one` and `two`.
run_long() {
  port=$((port + 1))
  for number in 1 0; do
    RANK=$number WORLD_SIZE=2 MASTER_PORT=$port "$program" --data "$work/text.txt" --bytes --init random --threads 1 \
      --steps 100000000 -q -o "$1" >"$work/out.$number" 2>"$work/err.$number" &
    [ $number = 1 ] && two=$! || one=$!
  done
  while [ ! -s "$1/metrics.jsonl" ]; do
    kill -0 $one 2>/dev/null || fail "a run of many steps"
    sleep 0.1
  done
}
run_long "$work/stop"
kill -USR1 $two
wait $one
[ $? = 7 ] || fail "exit code of an interruption"
wait $two
[ $? = 7 ] || fail "exit code of an interrupted rank"
ls "$work/stop/checkpoints" | grep -q '^step-' || fail "checkpoint of an interruption"

run_long "$work/lost"
kill -KILL $two
wait $one
[ $? = 6 ] || fail "exit code after a lost rank"
grep -q 'rank 1' "$work/err.0" || fail "message of a lost rank"
echo "ok"
