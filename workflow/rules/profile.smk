# On a Hopper node with Nsight: measure the plain kernel of every configured shape; the exports become one table.
# After the capture, which has built the kernel and found its results right.


rule profile_nsys:
    input:
        "results/captured/{log}.salog",
    output:
        "results/profiled/{log}.nsys-rep",
        "results/profiled/{log}.sqlite",
    log:
        "results/logs/profile-nsys-{log}.log",
    resources:
        gpu=1,
        mem_mb=6000,
    params:
        shape=lambda wildcards: config["logs"][wildcards.log]["shape"],
        source=flags("--source", [config["fa3_source"]] if config["fa3_source"] else []),
        package=PACKAGE,
    shell:
        "{SIMFA} capture {params.shape} {params.source} --profile nsys -o {output[0]} > {log} 2>&1"


rule profile_ncu:
    input:
        "results/captured/{log}.salog",
    output:
        "results/profiled/{log}.ncu-rep",
        "results/profiled/{log}.csv",
    log:
        "results/logs/profile-ncu-{log}.log",
    resources:
        gpu=1,
        mem_mb=6000,
    params:
        shape=lambda wildcards: config["logs"][wildcards.log]["shape"],
        source=flags("--source", [config["fa3_source"]] if config["fa3_source"] else []),
        package=PACKAGE,
    shell:
        "{SIMFA} capture {params.shape} {params.source} --profile ncu --cache-control none -o {output[0]} > {log} 2>&1"


# Both tools ran at the clocks the user has set, with caches as the launches before left them; a CSV of ncu does not say.
rule ingest_profiled:
    input:
        PROFILED,
    output:
        "results/profiled/measured.csv",
    log:
        "results/logs/ingest_profiled.log",
    params:
        package=PACKAGE,
    shell:
        "{SIMFA} ingest {input} --kernel FlashAttnFwd --clock-control none --cache-control none -o {output} > {log} 2>&1"
