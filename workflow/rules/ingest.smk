# Profiler exports named in the config (exports), read into one table.


rule ingest:
    input:
        config["exports"],
    output:
        "results/ingested.csv",
    log:
        "results/logs/ingest.log",
    params:
        package=PACKAGE,
    shell:
        "{SIMFA} ingest {input} -o {output} > {log} 2>&1"
