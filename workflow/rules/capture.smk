# On a Hopper node: build the probed FA3 kernel from its sources and write logs. Skipped where logs are bundled.


rule build_probed_kernel:
    input:
        source=config["fa3_source"] or [],
    output:
        library=directory("results/fa3"),
    log:
        "results/logs/build_probed_kernel.log",
    shell:
        "({SIMFA} instrument patch {input.source} -o {output.library}/source"
        " && {SIMFA} instrument build {output.library}/source -o {output.library}) > {log} 2>&1"


rule capture:
    input:
        library="results/fa3",
    output:
        "results/captured/{log}.salog",
    log:
        "results/logs/capture-{log}.log",
    retries: 2
    resources:
        gpu=1,
    params:
        shape=lambda wildcards: config["logs"][wildcards.log]["shape"],
    shell:
        "{SIMFA} capture {params.shape} --library {input.library} -o {output} > {log} 2>&1"
