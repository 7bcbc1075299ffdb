# On a Hopper node: run the plain and the probed kernel and write the log. Skipped where logs are bundled.


rule capture:
    output:
        "results/captured/{log}.salog",
    log:
        "results/logs/capture-{log}.log",
    retries: 2
    # The first capture of a kernel compiles it: one compiler process of 4.3 GB.
    resources:
        gpu=1,
        mem_mb=6000,
    params:
        shape=lambda wildcards: config["logs"][wildcards.log]["shape"],
        source=flags("--source", [config["fa3_source"]] if config["fa3_source"] else []),
        package=PACKAGE,
    shell:
        "{SIMFA} capture {params.shape} {params.source} -o {output} > {log} 2>&1"
