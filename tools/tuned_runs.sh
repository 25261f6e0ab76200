#!/usr/bin/env bash
# The tables of docs/results.md on ALFWorld's seen split. It needs one GPU (80 GB or more), 16 cores and the official games:
#   MODEL=smollm2.gguf OUT=runs/tuned tools/tuned_runs.sh [STAGE...]
# Stages, by default all: data, tune, serve, correct, retune, play, replay, untuned, table. Needs `make setup`, and a Python with vllm,
# peft, accelerate and gguf as $GPU_PYTHON (python3 by default). LARGE=qwen.gguf also plays that model, untuned. On an H200: data
# 1 minute, tune and serve 3 each, correct 2, play 11 (retune beside it), replay 4; untuned was not run yet.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$(realpath "${MODEL:?the GGUF file of SmolLM2-135M-Instruct}") out=$(realpath -m "${OUT:?a folder}")
python=${GPU_PYTHON:-python3} rpms=.venv/bin/rpms tunings=(1 2 3 4 5)
export OPENAI_API_KEY=none VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 TORCHINDUCTOR_COMPILE_THREADS=3
few=(--conditions A,C,D,D+verify)
arms=(--conditions A,S,B,C,D,D+verify --arm "C+verify:condition=C,guard=verify"
  --arm "D neither:condition=D,scf=off,arbitration=none" --arm "D extras:condition=D,arbitration_extras=true"
  --arm "D h3:condition=D,history=3")
mkdir -p "$out"

# The expert's decisions in generated homes; its memory of all games of valid_train, and of 80 of them.
data() {
  $rpms export --expert --limit 640 --mistakes 0.1 "${arms[@]}" --workers 15 --out "$out/lines.jsonl"
  $rpms tasks --split valid_train --json | $python -c '
import json, sys
tasks = json.load(sys.stdin)
for n in range(6):  # 0: the tasks of the memory for the round of correction; 1 to 5: what each tuning plays in it
    ids = [t["id"] for i, t in enumerate(tasks) if (i % 5 < 2 if n == 0 else i % 5 > 1 and i % 8 == n)]
    open(f"{sys.argv[1]}/part-{n}.txt", "w").write("\n".join(ids) + "\n")' "$out"
  for part in all 0; do
    chosen=()
    [ "$part" = all ] || chosen=(--tasks "@$out/part-$part.txt")
    $rpms eval --split valid_train --no-truth --seed 1 "${chosen[@]}" --out "$out/teacher-$part" \
      --arm "teacher:graph=rpms.evals.running.expert:graph,condition=B,temperature=0.15"
    $rpms learn --from-runs "$out/teacher-$part" --condition teacher --split valid_train --out "$out/memory-$part.jsonl" \
      --allow "the procedure with mistakes made on purpose played games of valid_train"
  done
}

# train NAME ARGUMENTS...: five tunings at once, which share the GPU; {n} in an argument is the number of the tuning.
train() {
  local name=$1 jobs=() n
  shift
  nvidia-cuda-mps-control -d 2>/dev/null || true
  for n in "${tunings[@]}"; do
    $python examples/tune.py --model "$model" --out "$out/$name-$n" --rate 5e-4 --seed "1$n" --no-checkpointing "${@//"{n}"/$n}" \
      >"$out/$name-$n.log" 2>&1 &
    jobs+=($!)
  done
  for n in "${jobs[@]}"; do wait "$n"; done
}
tune() { train tuned --data "$out/lines.jsonl" --lora 32 --steps 480; }
retune() { train corrected --data "$out/corrections.jsonl" --adapter "$out/tuned-{n}" --steps 320; }

# unpack FILE.gguf FOLDER: the weights as vLLM reads them.
unpack() {
  [ -d "$2" ] || $python - "$@" <<'P'
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
file = Path(sys.argv[1])
whole = {"gguf_file": file.name, "dtype": torch.bfloat16, "quantization_config": GgufConfig(dequantize=True)}
AutoModelForCausalLM.from_pretrained(file.parent, **whole).save_pretrained(sys.argv[2])
AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(sys.argv[2])
P
}

# start FOLDER NAME PORT ARGUMENTS...: a server in the background; ready PORT...: wait for them.
start() {
  setsid nohup "$python" -m vllm.entrypoints.openai.api_server --model "$1" --served-model-name "$2" --port "$3" "${@:4}" \
    >"$out/server-$3.log" 2>&1 </dev/null &
  echo $! >>"$out/servers"
}
ready() { for port in "$@"; do until curl -sf "http://127.0.0.1:$port/v1/models" >/dev/null; do sleep 1; done; done; }
serve() {
  local n
  unpack "$model" "$out/base"
  for n in "${tunings[@]}"; do
    start "$out/base" small "800$n" --enable-lora --max-lora-rank 32 --max-loras 2 --gpu-memory-utilization 0.05 \
      --kv-cache-memory-bytes 5G --max-model-len 8192 --max-num-seqs 128
  done
  ready 8001 8002 8003 8004 8005
}

# play_with NAME FOLDER ARGUMENTS...: each tuning on its own server.
play_with() {
  local name=$1 folder=$2 jobs=() n
  shift 2
  for n in "${tunings[@]}"; do
    curl -s "http://127.0.0.1:800$n/v1/load_lora_adapter" -H 'content-type: application/json' \
      -d "{\"lora_name\": \"$name-$n\", \"lora_path\": \"$out/$name-$n\"}" >>"$out/adapters.log"
    $rpms eval "${@//"{n}"/$n}" --set max_tokens=96 --set timeout_s=300 --no-truth --model "openai:$name-$n" \
      --base-url "http://127.0.0.1:800$n/v1" --concurrency 72 --workers 3 --out "$out/$folder-$n" >"$out/$folder-$n.log" 2>&1 &
    jobs+=($!)
  done
  for n in "${jobs[@]}"; do wait "$n"; done
}

# One round of correction: each tuning plays 15 train games, the expert answers at each state.
correct() {
  local n
  play_with tuned errors "${arms[@]}" --split valid_train --tasks "@$out/part-{n}.txt" --memory "$out/memory-0.jsonl"
  for n in "${tunings[@]}"; do $rpms export "$out/errors-$n" --expert --most 12 --out "$out/corrections-$n.jsonl"; done
  cat "$out"/corrections-[1-5].jsonl >"$out/corrections.jsonl"
}
play() { play_with tuned played "${arms[@]}" --split valid_seen --memory "$out/memory-all.jsonl"; }
replay() { play_with corrected replayed "${few[@]}" --split valid_seen --memory "$out/memory-all.jsonl"; }

untuned_with() { # NAME PORT
  for plan in default paper; do
    [ $plan = default ] && chosen=() || chosen=(--plan paper)
    $rpms eval "${chosen[@]}" --conditions A,B,C,D,D+verify --split valid_seen --limit 40 --spread --memory "$out/memory-all.jsonl" \
      --set timeout_s=300 --no-truth --model "openai:$1" --base-url "http://127.0.0.1:$2/v1" --concurrency 200 --workers 8 \
      --out "$out/untuned-$1-$plan"
  done
}
untuned() {
  untuned_with small 8001
  [ -n "${LARGE:-}" ] || return 0
  unpack "$(realpath "$LARGE")" "$out/large"
  start "$out/large" large 8010 --gpu-memory-utilization 0.2 --max-model-len 16384 --max-num-seqs 200
  ready 8010
  untuned_with large 8010
}
table() {
  .venv/bin/python -m tools.results_table "$out"/played-? --corrected "$out"/replayed-? --commit "$(git rev-parse --short HEAD)"
}

if [ $# = 0 ]; then
  data
  tune & wait_for=$!
  serve
  wait $wait_for
  correct
  retune & wait_for=$!
  play
  wait $wait_for
  for stage in replay untuned table; do $stage; done
  xargs kill <"$out/servers"
else
  for stage; do $stage; done
fi
