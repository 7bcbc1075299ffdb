#!/bin/sh
# Writes the logs of this folder again, byte for byte: sh data/logs/make.sh
set -eu
cd "$(dirname "$0")"
simfa synth --head-dim 64 --seqlen 384 --heads-q 4 -o synthetic-d64-full.salog
simfa synth --head-dim 64 --seqlen 384 --heads-q 4 --causal -o synthetic-d64-causal.salog
simfa synth --head-dim 128 --seqlen 512 --heads-q 4 --heads-kv 2 -o synthetic-d128-full.salog
simfa synth --head-dim 128 --seqlen 512 --heads-q 4 --heads-kv 2 --level 1 -o synthetic-d128-full-level1.salog
simfa synth --head-dim 128 --seqlen 256 --heads-q 68 --one-warp -o synthetic-d128-full-persistent.salog
simfa synth --head-dim 128 --seqlen 256 --heads-q 68 --one-warp --causal -o synthetic-d128-causal-persistent.salog
simfa synth --head-dim 256 --seqlen 256 --heads-q 4 -o synthetic-d256-full.salog
simfa synth --head-dim 256 --seqlen 256 --heads-q 4 --causal -o synthetic-d256-causal.salog
simfa synth --model llama3-8b --seqlen 512 --one-warp -o synthetic-llama3-8b-512.salog
rm -f ./*.manifest.json
