# Cycle-level simulation of traces, of measured cases, and of shapes without a log.


rule simulate:
    input:
        trace="results/runs/{log}/run.satrace",
        preset=files_of(config["gpu"]),
    output:
        "results/runs/{log}/stats.json",
    log:
        "results/logs/simulate-{log}.log",
    benchmark:
        "results/benchmarks/simulate-{log}.tsv"
    params:
        gpu=config["gpu"],
        package=PACKAGE,
    shell:
        "{SIMFA} simulate {input.trace} --gpu {params.gpu:q} --quiet -o results/runs/{wildcards.log} > {log} 2>&1"


rule record_timeline:
    input:
        files_of(config["gpu"]),
    output:
        "results/timeline/timeline.npz",
    log:
        "results/logs/record_timeline.log",
    params:
        shape=config["gantt"]["shape"],
        cycles=flags("--max-cycles", [config["gantt"]["cycles"]] if "cycles" in config["gantt"] else []),
        gpu=config["gpu"],
        package=PACKAGE,
    shell:
        "{SIMFA} predict {params.shape} --gpu {params.gpu:q} {params.cycles} --timeline 1 --quiet"
        " -o results/timeline > {log} 2>&1"


rule perfetto_trace:
    input:
        "results/timeline/timeline.npz",
    output:
        "results/run.pftrace",
    log:
        "results/logs/perfetto_trace.log",
    params:
        package=PACKAGE,
    shell:
        "{SIMFA} timeline {input} --quiet -o {output} > {log} 2>&1"


rule simulate_measured_case:
    output:
        "results/measured/{case}/stats.json",
    log:
        "results/logs/measured-{case}.log",
    benchmark:
        "results/benchmarks/measured-{case}.tsv"
    # Long cases first, so that they do not end the run alone.
    priority: lambda wildcards: CASES[wildcards.case]
    params:
        package=PACKAGE,
    shell:
        "{SIMFA} validate --set all --case {wildcards.case} --quiet --stats results/measured > {log} 2>&1"


rule predict:
    input:
        lambda wildcards: files_of(PREDICTION_GPUS[wildcards.gpu]),
    output:
        "results/predictions/{gpu}/{model}-{seqlen}/stats.json",
    log:
        "results/logs/predict-{gpu}-{model}-{seqlen}.log",
    benchmark:
        "results/benchmarks/predict-{gpu}-{model}-{seqlen}.tsv"
    wildcard_constraints:
        gpu="[^/]+",
        seqlen=r"\d+",
    # Long cases first, so that they do not end the run alone.
    priority: lambda wildcards: int(wildcards.seqlen)
    params:
        gpu=lambda wildcards: PREDICTION_GPUS[wildcards.gpu],
        package=PACKAGE,
    shell:
        "{SIMFA} predict --model {wildcards.model} --seqlen {wildcards.seqlen} --gpu {params.gpu:q}"
        " --quiet -o results/predictions/{wildcards.gpu}/{wildcards.model}-{wildcards.seqlen} > {log} 2>&1"
