#!/usr/bin/env bash
# The table of docs/results.md, on a machine with one GPU (80 GB or more), 16 cores and the official games:
#   MODEL=small.gguf OUT=runs/tuned tools/tuned_runs.sh
# Needs `make setup`, and a Python with vllm, peft, accelerate and gguf as $GPU_PYTHON (python3 by default). On an H200: 3 minutes
# to tune, 3 to start the servers, 10 to play. Three servers play about three times as fast as one. It was run with its packages
# carried to a machine without network and its parts started at once, not as this one file.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$(realpath "${MODEL:?the GGUF file of SmolLM2-135M-Instruct}") out=$(realpath -m "${OUT:?a folder}")
python=${GPU_PYTHON:-python3} rpms=.venv/bin/rpms
export OPENAI_API_KEY=none VLLM_ALLOW_RUNTIME_LORA_UPDATING=1
arms=(--conditions A,S,B,C,D,D+verify --arm "C+verify:condition=C,guard=verify"
  --arm "D neither:condition=D,scf=off,arbitration=none" --arm "D extras:condition=D,arbitration_extras=true"
  --arm "D h3:condition=D,history=3")
mkdir -p "$out"

$rpms export --expert --limit 640 --mistakes 0.1 "${arms[@]}" --workers 15 --out "$out/lines.jsonl"
$rpms eval --split valid_train --no-truth --seed 1 --out "$out/teacher" \
  --arm "teacher:graph=rpms.evals.running.expert:graph,condition=B,temperature=0.15"
$rpms learn --from-runs "$out/teacher" --condition teacher --split valid_train --out "$out/memory.jsonl" \
  --allow "the procedure with mistakes made on purpose played each game of valid_train"

nvidia-cuda-mps-control -d || true # lets the five tunings share the GPU
tunings=()
for n in 1 2 3 4 5; do
  $python examples/tune.py --model "$model" --data "$out/lines.jsonl" --out "$out/tuning-$n" --lora 32 --rate 5e-4 \
    --steps 480 --seed "1$n" --no-checkpointing >"$out/tuning-$n.log" 2>&1 &
  tunings+=($!)
done
for process in "${tunings[@]}"; do wait "$process"; done

$python - "$model" "$out/base" <<'P'
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
file = Path(sys.argv[1])
whole = {"gguf_file": file.name, "dtype": torch.bfloat16, "quantization_config": GgufConfig(dequantize=True)}
AutoModelForCausalLM.from_pretrained(file.parent, **whole).save_pretrained(sys.argv[2])
AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(sys.argv[2])
P
servers=()
trap 'kill "${servers[@]}" 2>/dev/null' EXIT
for port in 8000 8001 8002; do
  $python -m vllm.entrypoints.openai.api_server --model "$out/base" --served-model-name small --port $port --enable-lora \
    --max-lora-rank 32 --max-loras 2 --gpu-memory-utilization 0.08 --kv-cache-memory-bytes 10G --max-model-len 8192 \
    --max-num-seqs 200 >"$out/server-$port.log" 2>&1 &
  servers+=($!)
done
for port in 8000 8001 8002; do until curl -sf "http://127.0.0.1:$port/v1/models" >/dev/null; do sleep 1; done; done

plays=()
for n in 1 2 3 4 5; do
  port=$((8000 + (n - 1) % 3))
  curl -sf "http://127.0.0.1:$port/v1/load_lora_adapter" -H 'content-type: application/json' \
    -d "{\"lora_name\": \"tuned-$n\", \"lora_path\": \"$out/tuning-$n\"}"
  $rpms eval --split valid_seen --memory "$out/memory.jsonl" "${arms[@]}" --set max_tokens=96 --set timeout_s=300 --no-truth \
    --model "openai:tuned-$n" --base-url "http://127.0.0.1:$port/v1" --concurrency 64 --workers 3 --out "$out/$n" \
    >"$out/play-$n.log" 2>&1 &
  plays+=($!)
done
for process in "${plays[@]}"; do wait "$process"; done
.venv/bin/python -m tools.results_table "$out"/{1,2,3,4,5} --commit "$(git rev-parse --short HEAD)"
