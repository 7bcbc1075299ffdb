# Published curves of the memory hierarchy beside the simulated part.

CURVES = config["memory_curves"]
MSHR_ENTRIES = [192, 256, 384]


def curve_arguments(wildcards):
    """Return what `simfa microbench` is to run for one table."""
    every = CURVES["every"]
    latency = f"tma-latency --method tma --every {max(1, every // 2)}"
    large = f"tma-bandwidth --min-box-bytes 16384 --every {2 * every}"
    return {
        "latency": latency,
        "latency-no-remote-copy": f"{latency} --overlay no-remote-copy",
        "bandwidth": f"tma-bandwidth --every {2 * every}",
        **{f"mshr-{entries}": f"{large} --set l2.mshr_entries={entries}" for entries in MSHR_ENTRIES},
    }[wildcards.table]


# After the longest simulations (their priority is their length), before the short ones: no drawing is left for the end.
rule memory_curve:
    output:
        "results/memory/{table}.csv",
    log:
        "results/logs/memory-{table}.log",
    priority: 1000
    params:
        arguments=curve_arguments,
        package=PACKAGE,
    shell:
        "{SIMFA} microbench {params.arguments} -o {output} > {log} 2>&1"


rule memory_figures:
    input:
        latency="results/memory/latency.csv",
        latency_off="results/memory/latency-no-remote-copy.csv",
        bandwidth="results/memory/bandwidth.csv",
        mshr=expand("results/memory/mshr-{entries}.csv", entries=MSHR_ENTRIES),
    output:
        index="results/memory/figures/figures.json",
        drawings=report(
            expand("results/memory/figures/{name}.svg", name=["tma_latency", "mshr", "tma_bandwidth"]),
            caption="../report/memory.rst",
            category="Memory hierarchy",
        ),
    log:
        "results/logs/memory-figures.log",
    priority: 1000
    params:
        mshr=lambda wildcards, input: flags("--mshr", map("=".join, zip(map(str, MSHR_ENTRIES), input.mshr))),
        package=PACKAGE,
    shell:
        "{SIMFA} memory-figures --latency {input.latency} --latency-off {input.latency_off}"
        " --bandwidth {input.bandwidth} {params.mshr} -o results/memory/figures > {log} 2>&1"
