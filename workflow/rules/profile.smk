# On a Hopper node with Nsight: measure the plain kernel of every configured shape; the exports go to ingestion. After the
# capture, which has built the kernel and found its results right.


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
